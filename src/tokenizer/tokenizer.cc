#include "tokenizer/tokenizer.h"

#include <algorithm>

#include "base/strings.h"
#include "base/try.h"
#include "tokenizer/byte_alphabet.h"

namespace topknot::tokenizer {
namespace {

constexpr std::string_view kByteLevelBpe = "gpt2";
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Texts that end a generation in the families we run; files often name only one of them.
constexpr std::string_view kStopTexts[] = {
    "<|endoftext|>",
    "<|user|>",
    "<|observation|>",        // GLM
    "<｜end▁of▁sentence｜>",  // DeepSeek
    "<|im_end|>",
    "[EOS]",  // Kimi, Qwen
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",  // Llama 3
};

bool is_special(TokenType type) {
  return type == TokenType::kControl || type == TokenType::kUnknown;
}
bool is_plain_text(TokenType type) { return is_special(type) || type == TokenType::kUserDefined; }

// 0xC0, 0xC1 and 0xF5 to 0xFF never occur in UTF-8; some vocabularies have no tokens for them.
bool occurs_in_utf8(uint32_t byte) { return byte < 0xC0 || (byte > 0xC1 && byte < 0xF5); }

Error corrupt(std::string what, std::string where, std::string why) {
  return Error{.code = Code::kCorrupt,
               .what = std::move(what),
               .where = std::move(where),
               .why = std::move(why),
               .fix = "get the file again, or convert the model again"};
}

Error over_limit(std::string what, std::string where, size_t found, size_t limit) {
  return Error{.code = Code::kOutOfRange,
               .what = std::move(what),
               .where = std::move(where),
               .why = cat("found ", found, ", at most ", limit, " are read"),
               .fix = "check that the file is a language model of a known family"};
}

std::string token_place(size_t id) { return cat("tokenizer.ggml.tokens[", id, "]"); }

Status check_counts(const TokenizerData& data) {
  if (data.tokens.empty()) {
    return corrupt("the vocabulary is empty", "tokenizer.ggml.tokens", "a model needs tokens");
  }
  if (data.tokens.size() > kMaxTokens) {
    return over_limit("too many tokens", "tokenizer.ggml.tokens", data.tokens.size(), kMaxTokens);
  }
  if (data.merges.size() > kMaxMerges) {
    return over_limit("too many merges", "tokenizer.ggml.merges", data.merges.size(), kMaxMerges);
  }
  if (!data.types.empty() && data.types.size() != data.tokens.size()) {
    return corrupt("token types do not match the tokens", "tokenizer.ggml.token_type",
                   cat(data.tokens.size(), " tokens, ", data.types.size(), " types"));
  }
  return {};
}

Status check_token(std::string_view text, TokenType type, size_t id) {
  if (type < TokenType::kNormal || type > TokenType::kByte) {
    return corrupt("a token has an unknown type", cat("tokenizer.ggml.token_type[", id, "]"),
                   cat("found ", static_cast<int>(type), ", known are 1 to 6"));
  }
  const size_t limit = is_plain_text(type) ? kMaxSpecialBytes : kMaxTokenBytes;
  if (text.size() > limit) {
    return over_limit("a token is too long (bytes)", token_place(id), text.size(), limit);
  }
  if (const size_t offset = find_invalid_utf8(text); offset != std::string_view::npos) {
    return corrupt("a token is not UTF-8", token_place(id),
                   cat("byte ", offset, " of '", printable(text), "'"));
  }
  return {};
}

}  // namespace

Result<Tokenizer> Tokenizer::create(TokenizerData data) {
  if (data.model != kByteLevelBpe) {
    return Error{.code = Code::kUnsupported,
                 .what = cat("unknown tokenizer model '", printable(data.model), "'"),
                 .where = "tokenizer.ggml.model",
                 .why = cat("known: ", kByteLevelBpe, " (byte-level BPE)"),
                 .fix = "use a model of the GLM, DeepSeek or Kimi family"};
  }
  TOPKNOT_TRY(PreTokenizer pre, PreTokenizer::create(data.pre));
  TOPKNOT_CHECK_OK(check_counts(data));
  if (data.types.empty()) data.types.assign(data.tokens.size(), TokenType::kNormal);
  Tokenizer tokenizer(std::move(data), std::move(pre));
  TOPKNOT_CHECK_OK(tokenizer.check_named_ids());
  TOPKNOT_CHECK_OK(tokenizer.load_tokens());
  TOPKNOT_CHECK_OK(tokenizer.load_byte_ids());
  TOPKNOT_CHECK_OK(tokenizer.load_merges());
  TOPKNOT_CHECK_OK(tokenizer.decide_bos());
  tokenizer.collect_specials();
  tokenizer.collect_stop_ids();
  return tokenizer;
}

Status Tokenizer::check_named_ids() const {
  const struct {
    const char* name;
    std::optional<int32_t> id;
  } named[] = {{"bos", data_.bos}, {"eos", data_.eos},     {"eot", data_.eot},
               {"eom", data_.eom}, {"unknown", data_.unk}, {"padding", data_.pad}};
  for (const auto& [name, id] : named) {
    if (!id || (*id >= 0 && *id < vocab_size())) continue;
    return corrupt(cat("the ", name, " token is not in the vocabulary"),
                   cat("tokenizer.ggml.", name, "_token_id"),
                   cat("id ", *id, ", the vocabulary has ", vocab_size(), " tokens"));
  }
  return {};
}

Status Tokenizer::load_tokens() {
  ids_.reserve(data_.tokens.size());
  byte_offsets_.reserve(data_.tokens.size() + 1);
  byte_offsets_.push_back(0);
  std::string decoded;
  for (size_t i = 0; i < data_.tokens.size(); ++i) {
    const std::string_view text = data_.tokens[i];
    TOPKNOT_CHECK_OK(check_token(text, data_.types[i], i));
    // A token without text is never found in one; several are harmless.
    if (!text.empty()) {
      const auto [at, is_new] = ids_.emplace(text, static_cast<int32_t>(i));
      if (!is_new) {
        return corrupt(cat("two tokens have the text '", printable(text), "'"), token_place(i),
                       cat("token ", at->second, " has it too"));
      }
    }
    decoded.clear();
    if (is_plain_text(data_.types[i])) {
      decoded = text;
    } else {
      append_alphabet_bytes(text, &decoded);
    }
    if (bytes_.size() + decoded.size() > kMaxVocabBytes) {
      return over_limit("the tokens are too long together (bytes)", token_place(i),
                        bytes_.size() + decoded.size(), kMaxVocabBytes);
    }
    bytes_.insert(bytes_.end(), decoded.begin(), decoded.end());
    byte_offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
  }
  return {};
}

// With a token for every byte, no text can fail to be encoded, whatever the merges leave over.
Status Tokenizer::load_byte_ids() {
  size_t missing = 0;
  uint32_t first_missing = 0;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    std::string text;
    append_utf8(&text, byte_to_code_point(static_cast<uint8_t>(byte)));
    auto id = find(text);
    if (id && is_special(type(*id))) id.reset();
    byte_ids_[byte] = id.value_or(-1);
    if (id || !occurs_in_utf8(byte)) continue;
    if (missing++ == 0) first_missing = byte;
  }
  if (missing == 0) return {};
  return corrupt("the vocabulary cannot spell every text", "tokenizer.ggml.tokens",
                 cat(missing, " bytes have no ordinary token, the first is ", first_missing));
}

Result<MergeTable::Rule> Tokenizer::parse_merge(std::string_view merge, std::string where) const {
  const size_t space = merge.find(' ');
  const bool two_parts = space != std::string_view::npos && space > 0 && space + 1 < merge.size() &&
                         merge.find(' ', space + 1) == merge.npos;
  if (!two_parts) {
    return corrupt("a merge is not two tokens", std::move(where),
                   cat("'", printable(merge), "' must have one space, between its parts"));
  }
  const std::string_view left = merge.substr(0, space);
  const std::string_view right = merge.substr(space + 1);
  const std::string merged = cat(left, right);
  const auto left_id = find(left);
  const auto right_id = find(right);
  const auto merged_id = find(merged);
  if (!left_id || !right_id || !merged_id) {
    const std::string_view lost = !left_id ? left : !right_id ? right : merged;
    return corrupt(cat("a merge uses '", printable(lost), "', which is no token"), std::move(where),
                   cat("'", printable(merge), "' needs both parts and the whole"));
  }
  // Else plain text could spell a change of role or the end of a turn.
  if (is_special(type(*merged_id))) {
    return corrupt(cat("a merge makes the special token '", printable(merged), "'"),
                   std::move(where),
                   "special tokens are found in the text as a whole, never merged");
  }
  return MergeTable::Rule{*left_id, *right_id, *merged_id};
}

Status Tokenizer::load_merges() {
  merges_ = MergeTable(data_.merges.size());
  for (size_t rank = 0; rank < data_.merges.size(); ++rank) {
    const std::string_view merge = data_.merges[rank];
    std::string where = cat("tokenizer.ggml.merges[", rank, "]");
    TOPKNOT_TRY(const MergeTable::Rule rule, parse_merge(merge, where));
    if (!merges_.add(rule)) {
      return corrupt(
          "a merge is given twice", std::move(where),
          cat("'", printable(merge), "' has rank ", *merges_.find(rule.left, rule.right)));
    }
  }
  data_.merges = {};  // the table has them now
  return {};
}

Status Tokenizer::decide_bos() {
  add_bos_ = data_.add_bos.value_or(pre_.spec().add_bos_by_default && data_.bos.has_value());
  if (add_bos_ && !data_.bos) {
    return corrupt("the file wants a BOS token and names none", "tokenizer.ggml.add_bos_token",
                   "tokenizer.ggml.bos_token_id is absent");
  }
  if (data_.add_eos && !data_.eos) {
    return corrupt("the file wants an EOS token and names none", "tokenizer.ggml.add_eos_token",
                   "tokenizer.ggml.eos_token_id is absent");
  }
  return {};
}

void Tokenizer::collect_specials() {
  std::vector<SpecialTokenSet::Token> all;
  std::vector<SpecialTokenSet::Token> user_defined;
  for (int32_t id = 0; id < vocab_size(); ++id) {
    const std::string_view text = data_.tokens[static_cast<size_t>(id)];
    if (text.empty() || !is_plain_text(type(id))) continue;
    all.push_back({text, id});
    if (type(id) == TokenType::kUserDefined) user_defined.push_back({text, id});
  }
  specials_ = SpecialTokenSet(std::move(all));
  user_defined_ = SpecialTokenSet(std::move(user_defined));
}

void Tokenizer::collect_stop_ids() {
  for (const auto id : {data_.eos, data_.eot, data_.eom}) {
    if (id) stop_ids_.push_back(*id);
  }
  for (const std::string_view text : kStopTexts) {
    // The same letters as an ordinary token are only text.
    if (const auto id = find(text); id && is_plain_text(type(*id))) stop_ids_.push_back(*id);
  }
  std::sort(stop_ids_.begin(), stop_ids_.end());
  stop_ids_.erase(std::unique(stop_ids_.begin(), stop_ids_.end()), stop_ids_.end());
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text,
                                               ParseSpecial parse_special) const {
  if (text.size() > kMaxTextBytes) {
    return Error{.code = Code::kOutOfRange,
                 .what = "the text is too long to tokenize at once",
                 .why = cat("it has ", text.size(), " bytes, the limit is ", kMaxTextBytes),
                 .fix = "send it in parts"};
  }
  if (const size_t offset = find_invalid_utf8(text); offset != std::string_view::npos) {
    return Error{.code = Code::kCorrupt,
                 .what = "the text is not UTF-8",
                 .where = cat("byte ", offset),
                 .why = cat("invalid from there on: '", printable(text.substr(offset), 12), "'"),
                 .fix = "convert the text to UTF-8"};
  }
  const SpecialTokenSet& specials = parse_special == ParseSpecial::kYes ? specials_ : user_defined_;
  BpeMerger merger(merges_, byte_ids_);
  std::vector<int32_t> ids;
  size_t done = 0;
  while (const auto match = specials.find(text, done)) {
    TOPKNOT_CHECK_OK(encode_plain(text.substr(done, match->begin - done), merger, &ids));
    ids.push_back(match->id);
    done = match->begin + match->bytes;
  }
  TOPKNOT_CHECK_OK(encode_plain(text.substr(done), merger, &ids));
  return ids;
}

Status Tokenizer::encode_plain(std::string_view text, BpeMerger& merger,
                               std::vector<int32_t>* ids) const {
  const bool ignore_merges = pre_.spec().ignore_merges;
  return pre_.for_each_piece(text, [&](std::string_view piece) {
    if (ignore_merges) {
      // Only ordinary tokens: plain text must not become a control token here.
      const auto whole = find(bytes_to_alphabet(piece));
      if (whole && type(*whole) == TokenType::kNormal) {
        ids->push_back(*whole);
        return;
      }
    }
    merger.append_tokens(piece, ids);
  });
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool special) const {
  std::string bytes;
  for (const int32_t id : ids) bytes += piece(id, special);
  return bytes;
}

std::string_view Tokenizer::piece(int32_t id, bool special) const {
  if (id < 0 || id >= vocab_size()) return kReplacement;
  if (!special && is_special(type(id))) return {};
  const auto i = static_cast<size_t>(id);
  return {bytes_.data() + byte_offsets_[i], byte_offsets_[i + 1] - byte_offsets_[i]};
}

std::optional<int32_t> Tokenizer::find(std::string_view token_text) const {
  const auto at = ids_.find(token_text);
  if (at == ids_.end()) return std::nullopt;
  return at->second;
}

TokenType Tokenizer::type(int32_t id) const {
  if (id < 0 || id >= vocab_size()) return TokenType::kUnused;
  return data_.types[static_cast<size_t>(id)];
}

bool Tokenizer::is_stop(int32_t id) const {
  return std::binary_search(stop_ids_.begin(), stop_ids_.end(), id);
}

void Tokenizer::prepend_bos(std::vector<int32_t>* ids) const {
  if (!add_bos_ || (!ids->empty() && ids->front() == *data_.bos)) return;
  ids->insert(ids->begin(), *data_.bos);
}

}  // namespace topknot::tokenizer
