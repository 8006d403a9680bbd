// Row decoders in a form that compilers turn into vectors. Compiled once per instruction set with
// -ffp-contract=off, so that every one of them equals the scalar decoders of tensor/ bit for bit.
// Block layouts: see tensor/dequantize.cc.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tensor/dtype.h"

#define TOPKNOT_CONCAT_(a, b) a##b
#define TOPKNOT_CONCAT(a, b) TOPKNOT_CONCAT_(a, b)

namespace topknot::ops {
namespace {

using tensor::DType;

template <class T>
T load(const std::byte* at) {
  T value;
  __builtin_memcpy(&value, at, sizeof(T));
  return value;
}

float f16(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(bits & 0x7FFFu) << 13;
  // Exponent bias 15 to 127: a product with 2^112, exact also for subnormal halves.
  const float scaled = __builtin_bit_cast(float, magnitude) * 0x1p112f;
  const uint32_t special = (bits & 0x7C00u) == 0x7C00u ? 0x7F800000u : 0u;  // inf, NaN
  return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, scaled) | special | sign);
}

void decode_f16(const std::byte* in, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = f16(load<uint16_t>(in + 2 * i));
}

void decode_bf16(const std::byte* in, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) {
    out[i] = __builtin_bit_cast(float, static_cast<uint32_t>(load<uint16_t>(in + 2 * i)) << 16);
  }
}

void decode_q8_0(const std::byte* in, int64_t n, float* out) {
  constexpr int64_t kBytes = 34;
  for (int64_t b = 0; b < n / 32; ++b) {
    const std::byte* block = in + b * kBytes;
    const float d = f16(load<uint16_t>(block));
    const auto* q = reinterpret_cast<const int8_t*>(block + 2);
    for (int64_t j = 0; j < 32; ++j) out[b * 32 + j] = d * static_cast<float>(q[j]);
  }
}

void decode_q5_0(const std::byte* in, int64_t n, float* out) {
  constexpr int64_t kBytes = 22;
  for (int64_t b = 0; b < n / 32; ++b) {
    const std::byte* block = in + b * kBytes;
    const float d = f16(load<uint16_t>(block));
    const auto high = load<uint32_t>(block + 2);
    const auto* q = reinterpret_cast<const uint8_t*>(block + 6);
    for (int j = 0; j < 16; ++j) {
      const int low5 = (q[j] & 15) | static_cast<int>(((high >> j) & 1u) << 4);
      const int high5 = (q[j] >> 4) | static_cast<int>(((high >> (j + 16)) & 1u) << 4);
      out[b * 32 + j] = d * static_cast<float>(low5 - 16);
      out[b * 32 + j + 16] = d * static_cast<float>(high5 - 16);
    }
  }
}

// Six-bit scale and minimum of group j, packed in 12 bytes.
void scale_min(const uint8_t* s, int j, int* scale, int* minimum) {
  if (j < 4) {
    *scale = s[j] & 63;
    *minimum = s[j + 4] & 63;
  } else {
    *scale = (s[j + 4] & 15) | ((s[j - 4] >> 6) << 4);
    *minimum = (s[j + 4] >> 4) | ((s[j] >> 6) << 4);
  }
}

void decode_q4_k(const std::byte* in, int64_t n, float* out) {
  constexpr int64_t kBytes = 144;
  for (int64_t b = 0; b < n / 256; ++b) {
    const std::byte* block = in + b * kBytes;
    const float d = f16(load<uint16_t>(block));
    const float dmin = f16(load<uint16_t>(block + 2));
    const auto* scales = reinterpret_cast<const uint8_t*>(block + 4);
    const auto* q = reinterpret_cast<const uint8_t*>(block + 16);
    for (int j = 0; j < 8; ++j) {
      int scale = 0;
      int minimum = 0;
      scale_min(scales, j, &scale, &minimum);
      const float ds = d * static_cast<float>(scale);
      const float m = dmin * static_cast<float>(minimum);
      const int shift = (j & 1) * 4;
      float* y = out + b * 256 + j * 32;
      for (int l = 0; l < 32; ++l) {
        y[l] = ds * static_cast<float>((q[32 * (j / 2) + l] >> shift) & 15) - m;
      }
    }
  }
}

void decode_q5_k(const std::byte* in, int64_t n, float* out) {
  constexpr int64_t kBytes = 176;
  for (int64_t b = 0; b < n / 256; ++b) {
    const std::byte* block = in + b * kBytes;
    const float d = f16(load<uint16_t>(block));
    const float dmin = f16(load<uint16_t>(block + 2));
    const auto* scales = reinterpret_cast<const uint8_t*>(block + 4);
    const auto* high = reinterpret_cast<const uint8_t*>(block + 16);
    const auto* q = reinterpret_cast<const uint8_t*>(block + 48);
    for (int j = 0; j < 8; ++j) {
      int scale = 0;
      int minimum = 0;
      scale_min(scales, j, &scale, &minimum);
      const float ds = d * static_cast<float>(scale);
      const float m = dmin * static_cast<float>(minimum);
      const int shift = (j & 1) * 4;
      float* y = out + b * 256 + j * 32;
      for (int l = 0; l < 32; ++l) {
        const int value = ((q[32 * (j / 2) + l] >> shift) & 15) | (((high[l] >> j) & 1) << 4);
        y[l] = ds * static_cast<float>(value) - m;
      }
    }
  }
}

void decode_q6_k(const std::byte* in, int64_t n, float* out) {
  constexpr int64_t kBytes = 210;
  for (int64_t b = 0; b < n / 256; ++b) {
    const std::byte* block = in + b * kBytes;
    const auto* low = reinterpret_cast<const uint8_t*>(block);
    const auto* high = reinterpret_cast<const uint8_t*>(block + 128);
    const auto* scales = reinterpret_cast<const int8_t*>(block + 192);
    const float d = f16(load<uint16_t>(block + 208));
    for (int g = 0; g < 16; ++g) {  // 16 weights share a scale
      const int c = g / 8;          // half of the block
      const int p = (g % 8) / 2;    // which two bits of `high`
      const int l0 = (g % 2) * 16;
      const float ds = d * static_cast<float>(scales[g]);
      const uint8_t* lo = low + 64 * c + 32 * (p & 1) + l0;
      const uint8_t* hi = high + 32 * c + l0;
      const int shift = p >= 2 ? 4 : 0;
      float* y = out + b * 256 + g * 16;
      for (int l = 0; l < 16; ++l) {
        const int value = ((lo[l] >> shift) & 15) | (((hi[l] >> (2 * p)) & 3) << 4);
        y[l] = ds * static_cast<float>(value - 32);
      }
    }
  }
}

}  // namespace

void TOPKNOT_CONCAT(decode_row_, TOPKNOT_ISA)(DType type, const std::byte* in, int64_t n,
                                              float* out);

void TOPKNOT_CONCAT(decode_row_, TOPKNOT_ISA)(DType type, const std::byte* in, int64_t n,
                                              float* out) {
  switch (type) {
    case DType::kF32: __builtin_memcpy(out, in, static_cast<size_t>(n) * 4); return;
    case DType::kF16: decode_f16(in, n, out); return;
    case DType::kBF16: decode_bf16(in, n, out); return;
    case DType::kQ8_0: decode_q8_0(in, n, out); return;
    case DType::kQ5_0: decode_q5_0(in, n, out); return;
    case DType::kQ4_K: decode_q4_k(in, n, out); return;
    case DType::kQ5_K: decode_q5_k(in, n, out); return;
    case DType::kQ6_K: decode_q6_k(in, n, out); return;
    default: __builtin_trap();  // binding refuses every other type by name
  }
}

}  // namespace topknot::ops
