// Cuts text into the pieces that BPE merges within: the regexes of a published tokenizer, run by
// PCRE2.
// `\s` means Unicode White_Space and `\p{Han}` the script itself, as in the libraries that the
// tokenizers were trained with. Oracle: the Python `regex` module
// (tests/data/pretokenizer_cases.json).
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "tokenizer/pre_tokenizer_patterns.h"
#include "topknot/error.h"

namespace topknot::tokenizer {

// Thread-safe once made: concurrent calls of const members share only the compiled patterns.
class PreTokenizer {
 public:
  // kUnsupported, with every known name, when `pre` is not one of pre_tokenizer_specs().
  static Result<PreTokenizer> create(std::string_view pre);
  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  const PreTokenizerSpec& spec() const { return *spec_; }

  // Calls `piece` for each piece of `text`, in order; the pieces are views of `text`, never empty,
  // and joined give `text`. `text` must be valid UTF-8. kResource if matching exceeds its work
  // limit, which is linear in the length of the text: no known pattern comes near it.
  Status for_each_piece(std::string_view text,
                        const std::function<void(std::string_view)>& piece) const;

 private:
  struct Pass;
  struct Scratch;
  PreTokenizer(const PreTokenizerSpec* spec, std::vector<Pass> passes);
  Status run_pass(size_t index, std::string_view text, std::vector<Scratch>& scratch,
                  const std::function<void(std::string_view)>& piece) const;

  const PreTokenizerSpec* spec_;  // in a constant table
  std::vector<Pass> passes_;
};

// The pieces of `text` as a list: for tests and tools. kCorrupt if `text` is not UTF-8.
Result<std::vector<std::string_view>> pre_tokenize(std::string_view pre, std::string_view text);

}  // namespace topknot::tokenizer
