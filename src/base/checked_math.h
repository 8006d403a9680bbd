// Arithmetic on numbers that come from a file or a user: true means the result does not fit.
#pragma once

#include <cstdint>

namespace topknot {

template <class T>
[[nodiscard]] bool add_overflows(T a, T b, T* sum) {
  return __builtin_add_overflow(a, b, sum);
}
template <class T>
[[nodiscard]] bool mul_overflows(T a, T b, T* product) {
  return __builtin_mul_overflow(a, b, product);
}

// Of sizes: what does not fit is kTooManyBytes, which no machine has and no later sum wraps.
inline constexpr uint64_t kTooManyBytes = UINT64_MAX;
inline uint64_t saturating_add(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return add_overflows(a, b, &sum) ? kTooManyBytes : sum;
}
inline uint64_t saturating_mul(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return mul_overflows(a, b, &product) ? kTooManyBytes : product;
}

template <class T>
constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}

}  // namespace topknot
