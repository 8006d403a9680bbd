// What the row decoders of one instruction set share. Internal linkage: files compiled with other
// -march options include it too, and the linker must not choose among their copies.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

#define TOPKNOT_CONCAT_(a, b) a##b
#define TOPKNOT_CONCAT(a, b) TOPKNOT_CONCAT_(a, b)

namespace topknot::ops {

// Kernels::decode_row, for the types with a grid of tensor/codebooks.h and for all types.
void TOPKNOT_CONCAT(decode_grid_row_, TOPKNOT_ISA)(tensor::DType type, const std::byte* in,
                                                   int64_t n, float* out);
void TOPKNOT_CONCAT(decode_row_, TOPKNOT_ISA)(tensor::DType type, const std::byte* in, int64_t n,
                                              float* out);

template <class T>
static inline T load(const std::byte* at) {
  T value;
  __builtin_memcpy(&value, at, sizeof(T));
  return value;
}

static inline const uint8_t* bytes_at(const std::byte* at) {
  return reinterpret_cast<const uint8_t*>(at);
}

static inline float f16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7FFFu) << 13;
  // Exponent bias 15 to 127: a product with 2^112, exact also for subnormal halves.
  const float scaled = __builtin_bit_cast(float, magnitude) * 0x1p112f;
  const uint32_t special = (bits & 0x7C00u) == 0x7C00u ? 0x7F800000u : 0u;  // inf, NaN
  return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, scaled) | special | sign);
}

}  // namespace topknot::ops
