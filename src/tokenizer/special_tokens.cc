#include "tokenizer/special_tokens.h"

#include <algorithm>

namespace topknot::tokenizer {
namespace {

uint8_t byte_at(std::string_view text, size_t i) { return static_cast<uint8_t>(text[i]); }

}  // namespace

SpecialTokenSet::SpecialTokenSet(std::vector<Token> tokens) : tokens_(std::move(tokens)) {
  // std::string_view compares as unsigned bytes, as the narrowing below needs.
  std::sort(tokens_.begin(), tokens_.end(),
            [](const Token& a, const Token& b) { return a.text < b.text; });
  for (const Token& token : tokens_) ++first_byte_[byte_at(token.text, 0) + 1u];
  for (size_t b = 1; b < first_byte_.size(); ++b) first_byte_[b] += first_byte_[b - 1];
}

// Narrows the sorted tokens to those that agree with the text byte by byte. A token that ends at
// the depth reached is the first of its range; the last one seen is the longest.
std::optional<SpecialTokenSet::Match> SpecialTokenSet::longest_at(std::string_view text,
                                                                  size_t begin) const {
  const uint8_t first = byte_at(text, begin);
  auto low = tokens_.begin() + first_byte_[first];
  auto high = tokens_.begin() + first_byte_[first + 1u];
  std::optional<Match> longest;
  for (size_t depth = 1; low != high; ++depth) {
    if (low->text.size() == depth) {
      longest = Match{begin, depth, low->id};
      ++low;
    }
    if (begin + depth == text.size()) break;
    const uint8_t wanted = byte_at(text, begin + depth);
    low = std::partition_point(
        low, high, [&](const Token& token) { return byte_at(token.text, depth) < wanted; });
    high = std::partition_point(
        low, high, [&](const Token& token) { return byte_at(token.text, depth) == wanted; });
  }
  return longest;
}

std::optional<SpecialTokenSet::Match> SpecialTokenSet::find(std::string_view text,
                                                            size_t from) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    const uint8_t first = byte_at(text, begin);
    if (first_byte_[first] == first_byte_[first + 1u]) continue;
    if (auto match = longest_at(text, begin)) return match;
  }
  return std::nullopt;
}

}  // namespace topknot::tokenizer
