// Finds special tokens in text: leftmost first, and of those that begin there the longest.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace topknot::tokenizer {

class SpecialTokenSet {
 public:
  struct Token {
    std::string_view text;  // not empty; outlives the set
    int32_t id;
  };
  struct Match {
    size_t begin;
    size_t bytes;
    int32_t id;
  };

  explicit SpecialTokenSet(std::vector<Token> tokens = {});  // texts are distinct

  // The first match at or after `from`. Work is bounded by text length times the longest token.
  std::optional<Match> find(std::string_view text, size_t from) const;

 private:
  std::optional<Match> longest_at(std::string_view text, size_t begin) const;

  std::vector<Token> tokens_;  // sorted by text
  std::array<uint32_t, 257>
      first_byte_{};  // tokens that begin with b: [first_byte_[b], first_byte_[b + 1])
};

}  // namespace topknot::tokenizer
