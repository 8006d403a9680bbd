// Byte-level BPE tokenizer: text to token ids and back.
//
//   encode: special tokens are split off, the rest is cut into pieces by regexes, each piece is
//   merged. decode: token texts joined. decode(encode(x)) == x for every UTF-8 text x when special
//   texts are shown.
//
// Oracles: Hugging Face `tokenizers` on the same vocabulary; the Python `regex` module for the
// pieces. Thread-safe: every const member may be called from many threads at once.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/bpe.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/special_tokens.h"
#include "topknot/error.h"

namespace topknot::tokenizer {

// Merging one piece of n bytes takes about 20 n bytes of memory: this bounds a request at 320 MiB.
inline constexpr size_t kMaxTextBytes = 16 << 20;
inline constexpr size_t kMaxTokens = 1 << 22;        // GLM-5 has 154,880
inline constexpr size_t kMaxMerges = 1 << 22;        // GLM-5 has 321,649
inline constexpr size_t kMaxTokenBytes = 64 << 10;   // text of one token
inline constexpr size_t kMaxVocabBytes = 256 << 20;  // text of all tokens
inline constexpr size_t kMaxSpecialBytes = 1
                                           << 10;  // text of a token that is searched for in texts

// Values as in tokenizer.ggml.token_type.
enum class TokenType : uint8_t {
  kNormal = 1,       // bytes in the alphabet of byte_alphabet.h
  kUnknown = 2,      // special; plain text
  kControl = 3,      // special; plain text, shown only on request
  kUserDefined = 4,  // plain text, always shown, always recognised: <think>, <tool_call>
  kUnused = 5,       // padding of the embedding table: never to be sampled
  kByte = 6,
};

// kNo is for what people and tools wrote: there "<|user|>" is text, not a change of role.
enum class ParseSpecial : uint8_t { kNo, kYes };

// The tokenizer.ggml.* keys of a file. Views must outlive the tokenizer; no `types` means all
// normal.
struct TokenizerData {
  std::string model;  // "gpt2": byte-level BPE
  std::string pre;    // a name of pre_tokenizer_specs()
  std::vector<std::string_view> tokens;
  std::vector<TokenType> types;
  std::vector<std::string_view> merges;  // "left right", in order of rank
  std::optional<int32_t> bos, eos, eot, eom, unk, pad;
  std::optional<bool> add_bos;  // absent: as the pre-tokenizer's family does
  bool add_eos = false;
};

class Tokenizer {
 public:
  // kUnsupported: a model or pre-tokenizer that is not known, with the list of those that are.
  // kOutOfRange: a count or length over the limits above. kCorrupt: token ids outside the
  // vocabulary, two tokens of one text, a token that is not UTF-8, a merge whose parts or result
  // are no tokens or that is given twice, a special token that plain text could spell, a byte of
  // UTF-8 without a token, BOS wanted but not named.
  static Result<Tokenizer> create(TokenizerData data);

  // Adds neither BOS nor EOS. kCorrupt: `text` is not UTF-8 (names the byte). kOutOfRange: `text`
  // is longer than kMaxTextBytes. kResource: see PreTokenizer::for_each_piece.
  Result<std::vector<int32_t>> encode(std::string_view text, ParseSpecial parse_special) const;

  // The bytes of the tokens; not always UTF-8. `special` also shows control and unknown tokens. An
  // id outside the vocabulary is shown as U+FFFD.
  std::string decode(std::span<const int32_t> ids, bool special) const;

  // The same for one token; a view into the tokenizer (or a constant).
  std::string_view piece(int32_t id, bool special) const;
  std::string_view token_bytes(int32_t id) const { return piece(id, true); }

  int32_t vocab_size() const { return static_cast<int32_t>(data_.tokens.size()); }
  // By exact text as in the file: special tokens as they read, others in the byte alphabet.
  std::optional<int32_t> find(std::string_view token_text) const;
  TokenType type(int32_t id) const;  // kUnused outside the vocabulary
  bool is_unused(int32_t id) const { return type(id) == TokenType::kUnused; }  // mask at sampling

  std::optional<int32_t> bos() const { return data_.bos; }
  std::optional<int32_t> eos() const { return data_.eos; }
  std::optional<int32_t> eot() const { return data_.eot; }
  std::optional<int32_t> eom() const { return data_.eom; }
  std::optional<int32_t> unk() const { return data_.unk; }
  std::optional<int32_t> pad() const { return data_.pad; }

  // Ids that end a generation, ascending: eos, eot, eom, and special tokens whose text is known to
  // end one. A GLM model that stops only at eos writes the user's next turn itself.
  const std::vector<int32_t>& stop_ids() const { return stop_ids_; }
  bool is_stop(int32_t id) const;

  bool add_bos() const { return add_bos_; }
  bool add_eos() const { return data_.add_eos; }
  // Puts BOS in front if the model wants one and a template has not already put it there.
  void prepend_bos(std::vector<int32_t>* ids) const;

  const PreTokenizerSpec& pre_tokenizer() const { return pre_.spec(); }

 private:
  Tokenizer(TokenizerData data, PreTokenizer pre) : data_(std::move(data)), pre_(std::move(pre)) {}
  Status load_tokens();
  Status load_byte_ids();
  Status load_merges();
  Result<MergeTable::Rule> parse_merge(std::string_view merge, std::string where) const;
  Status check_named_ids() const;
  Status decide_bos();
  void collect_specials();
  void collect_stop_ids();
  Status encode_plain(std::string_view text, BpeMerger& merger, std::vector<int32_t>* ids) const;

  TokenizerData data_;
  PreTokenizer pre_;
  std::unordered_map<std::string_view, int32_t> ids_;
  std::vector<char> bytes_;             // what each token decodes to, one after the other
  std::vector<uint32_t> byte_offsets_;  // vocab_size() + 1
  std::array<int32_t, 256> byte_ids_{};
  MergeTable merges_;
  SpecialTokenSet specials_;      // control, unknown and user-defined
  SpecialTokenSet user_defined_;  // what is recognised in plain text too
  std::vector<int32_t> stop_ids_;
  bool add_bos_ = false;
};

}  // namespace topknot::tokenizer
