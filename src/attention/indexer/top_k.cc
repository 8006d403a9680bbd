#include "attention/indexer/top_k.h"

#include <array>
#include <bit>
#include <cmath>

namespace topknot::attention {
namespace {

// Larger floats have larger keys; NaN has 0; -0 and +0 are equal.
uint32_t order_key(float score) {
  if (std::isnan(score)) return 0;
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);
  return (bits & 0x8000'0000u) != 0 ? ~bits : bits | 0x8000'0000u;
}

// Digits of a key from the highest: 11, 11 and 10 bits.
struct Digit {
  int shift;
  uint32_t mask;
};
constexpr Digit kDigits[] = {{21, 0x7FF}, {10, 0x7FF}, {0, 0x3FF}};

}  // namespace

int64_t select_top_k(std::span<const float> scores, int64_t k, int32_t* indices) {
  const auto n = static_cast<int64_t>(scores.size());
  if (k <= 0) return 0;
  if (n <= k) {
    for (int64_t i = 0; i < n; ++i) indices[i] = static_cast<int32_t>(i);
    return n;
  }
  // The k-th largest key, one digit at a time: keys that match the prefix so far are counted by
  // their next digit.
  uint32_t prefix = 0;
  uint32_t prefix_mask = 0;
  int64_t wanted = k;  // how many of the keys that match the prefix are still to be taken
  for (const Digit& digit : kDigits) {
    std::array<int64_t, 2048> count{};
    for (const float score : scores) {
      const uint32_t key = order_key(score);
      if ((key & prefix_mask) == prefix) ++count[(key >> digit.shift) & digit.mask];
    }
    uint32_t bucket = digit.mask;
    while (count[bucket] < wanted) wanted -= count[bucket--];
    prefix |= bucket << digit.shift;
    prefix_mask |= digit.mask << digit.shift;
  }
  // Everything above the threshold, and the first `wanted` equal to it.
  int64_t written = 0;
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t key = order_key(scores[static_cast<size_t>(i)]);
    if (key > prefix || (key == prefix && wanted > 0)) {
      if (key == prefix) --wanted;
      indices[written++] = static_cast<int32_t>(i);
    }
  }
  return written;
}

}  // namespace topknot::attention
