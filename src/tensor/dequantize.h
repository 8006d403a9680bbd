// Scalar decoding of GGML blocks to fp32: the meaning of each format, and the oracle of every
// faster kernel. Block layouts stand beside each decoder in dequantize.cc.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace topknot::tensor {

float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);  // round to nearest even; overflow becomes infinity
inline float bf16_to_f32(uint16_t bits) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
}
uint16_t f32_to_bf16(float value);  // round to nearest even; NaN stays NaN
// OCP FP8 E4M3: no infinity, the largest value is 448, 0x7F and 0xFF are NaN.
float e4m3_to_f32(uint8_t bits);
uint8_t f32_to_e4m3(float value);  // round to nearest even; too large becomes 448; NaN stays NaN

// Decodes `elements` (a multiple of the type's block) starting at `blocks` (no alignment needed) to
// `out`. The type must be one with DTypeInfo::decoded.
void dequantize_row(DType type, const std::byte* blocks, uint64_t elements, float* out);

}  // namespace topknot::tensor
