// Fuzzes the tokenizer in two ways, chosen by the first byte: texts under a fixed vocabulary with
// every pre-tokenizer, and the vocabulary itself (counts, types, merges, named ids).
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "base/strings.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/test_vocab.h"
#include "tokenizer/tokenizer.h"

namespace {

using namespace topknot;
using namespace topknot::tokenizer;

// One per pre-tokenizer, with merges that meet, cross code points and overlap.
std::vector<Tokenizer> make_tokenizers() {
  static auto* vocabs = new std::vector<std::unique_ptr<TestVocab>>;  // the tokenizers' texts
  std::vector<Tokenizer> out;
  for (const PreTokenizerSpec& spec : pre_tokenizer_specs()) {
    auto& vocab = *vocabs->emplace_back(std::make_unique<TestVocab>(std::string(spec.name)));
    constexpr std::pair<const char*, const char*> kMerges[] = {
        {" ", " "},       {"  ", "  "},     {"\n", "\n"},     {"a", "a"},   {"a", "b"}, {"aa", "a"},
        {" ", "a"},       {"t", "h"},       {"th", "e"},      {"'", "s"},   {"1", "2"}, {"12", "3"},
        {"\xE4", "\xB8"}, {"\xAD", "\xE6"}, {"\xF0", "\x9F"}, {"\r", "\n"}, {"<", "|"}};
    for (const auto& [left, right] : kMerges) vocab.merge(left, right);
    for (const char* text : {"<|user|>", "<|user", "[gMASK]", "<｜User｜>", "\n\n\n"}) {
      vocab.add(text, TokenType::kControl);
    }
    for (const char* text : {"<think>", "</think>", "|>"}) vocab.add(text, TokenType::kUserDefined);
    auto tokenizer = Tokenizer::create(vocab.data);
    TOPKNOT_ASSERT(tokenizer.has_value());
    out.push_back(std::move(tokenizer).value());
  }
  return out;
}

void check_text(const Tokenizer& tokenizer, std::string_view text) {
  for (const ParseSpecial parse : {ParseSpecial::kNo, ParseSpecial::kYes}) {
    const auto ids = tokenizer.encode(text, parse);
    TOPKNOT_ASSERT(ids.has_value() == (find_invalid_utf8(text) == std::string_view::npos));
    if (!ids) return;
    TOPKNOT_ASSERT(tokenizer.decode(*ids, true) == text);
    if (parse == ParseSpecial::kNo) TOPKNOT_ASSERT(tokenizer.decode(*ids, false) == text);
    StreamDecoder stream(tokenizer, true);
    std::string streamed;
    for (const int32_t id : *ids) {
      streamed += stream.push(id);
      TOPKNOT_ASSERT(find_invalid_utf8(streamed) == std::string::npos);
    }
    TOPKNOT_ASSERT(streamed + stream.finish() == text);
  }
}

// Ids at random: what a model samples need not be text at all.
void check_ids(const Tokenizer& tokenizer, std::string_view bytes) {
  std::vector<int32_t> ids;
  for (const char c : bytes)
    ids.push_back(static_cast<uint8_t>(c) + (ids.size() % 3 == 0 ? 100 : -1));
  StreamDecoder stream(tokenizer);
  std::string streamed;
  for (const int32_t id : ids) streamed += stream.push(id);
  streamed += stream.finish();
  TOPKNOT_ASSERT(streamed == to_valid_utf8(tokenizer.decode(ids, false)));
}

std::string_view take_line(std::string_view* rest) {
  const size_t end = std::min(rest->find('\n'), rest->size());
  const std::string_view line = rest->substr(0, end);
  rest->remove_prefix(std::min(end + 1, rest->size()));
  return line;
}

// Lines: "m" + merge, a digit (the type) + token, or "i" + named ids as bytes; after the last the
// text.
void check_vocabulary(std::string_view input) {
  TestVocab vocab;
  vocab.data.pre = take_line(&input);
  const std::string_view all = input;
  while (!input.empty()) {
    const std::string_view line = take_line(&input);
    if (line.empty()) continue;
    const std::string_view value = line.substr(1);
    if (line[0] == 'm') {
      vocab.data.merges.push_back(value);
    } else if (line[0] == 'i') {
      const std::array named = {&vocab.data.bos, &vocab.data.eos, &vocab.data.eot, &vocab.data.eom};
      for (size_t i = 0; i < std::min(value.size(), named.size()); ++i) {
        *named[i] = static_cast<int32_t>(value[i]) * 3;
      }
      vocab.data.add_bos = value.size() % 2 == 0;
    } else {
      vocab.add(std::string(value), static_cast<TokenType>(line[0] - '0'));
    }
  }
  const auto tokenizer = Tokenizer::create(vocab.data);
  if (!tokenizer) {
    TOPKNOT_ASSERT(!tokenizer.error().what.empty());
    TOPKNOT_ASSERT(!tokenizer.error().why.empty());
    return;
  }
  // Where user-defined tokens look like merged bytes, their text is not what was encoded.
  if (std::count(vocab.data.types.begin(), vocab.data.types.end(), TokenType::kUserDefined) == 0) {
    check_text(*tokenizer, all);
  } else {
    TOPKNOT_ASSERT(tokenizer->encode(all, ParseSpecial::kNo).has_value() ==
                   (find_invalid_utf8(all) == std::string_view::npos));
  }
  std::vector<int32_t> ids;
  tokenizer->prepend_bos(&ids);
  TOPKNOT_ASSERT(ids.size() == (tokenizer->add_bos() ? 1u : 0u));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<Tokenizer> tokenizers = make_tokenizers();
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'V') {
    check_vocabulary(rest);
    return 0;
  }
  const Tokenizer& tokenizer = tokenizers[data[0] % tokenizers.size()];
  check_text(tokenizer, rest);
  check_ids(tokenizer, rest);
  return 0;
}
