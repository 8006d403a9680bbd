// Arithmetic on numbers that come from a file or a user: true means the result does not fit.
#pragma once

namespace topknot {

template <class T>
[[nodiscard]] bool add_overflows(T a, T b, T* sum) {
  return __builtin_add_overflow(a, b, sum);
}
template <class T>
[[nodiscard]] bool mul_overflows(T a, T b, T* product) {
  return __builtin_mul_overflow(a, b, product);
}

template <class T>
constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}

}  // namespace topknot
