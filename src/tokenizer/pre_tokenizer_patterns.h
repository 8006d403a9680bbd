// The published pre-tokenisation regexes, as data.
#pragma once

#include <span>
#include <string_view>

namespace topknot::tokenizer {

// One way to cut text into pieces. `passes` are applied in order: pass 1 to the whole text, each
// later pass inside every piece of the one before; a match is a piece and so is the gap between two
// matches.
struct PreTokenizerSpec {
  std::string_view name;                     // as in tokenizer.ggml.pre
  std::span<const std::string_view> passes;  // as published, but for what their comments say
  bool ignore_merges = false;                // a piece that is a token is emitted without merging
  bool add_bos_by_default = false;           // when the file does not say
};

// Every known spec, one per name.
std::span<const PreTokenizerSpec> pre_tokenizer_specs();

}  // namespace topknot::tokenizer
