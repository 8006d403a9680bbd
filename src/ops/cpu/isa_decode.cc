// Row decoders in a form that compilers turn into vectors. Compiled once per instruction set with
// -ffp-contract=off, so that every one of them equals the scalar decoders of tensor/ bit for bit.
// Block layouts: tensor/blocks.h.
#include "ops/cpu/isa_decode.h"

#include <cstring>

#include "tensor/codebooks.h"

namespace topknot::ops {
namespace {

using tensor::DType;

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

// The formats of 32 values with a nibble for each: low nibbles first, then the high ones.
template <class Value>
void put_nibbles(const uint8_t* q, float* y, Value&& value) {
  for (int j = 0; j < 16; ++j) y[j] = value(q[j] & 15);
  for (int j = 0; j < 16; ++j) y[j + 16] = value(q[j] >> 4);
}

void decode_q4_0(const std::byte* in, int64_t n, float* out) {
  constexpr int64_t kBytes = 18;
  for (int64_t b = 0; b < n / 32; ++b) {
    const std::byte* block = in + b * kBytes;
    const float d = f16(load<uint16_t>(block));
    put_nibbles(bytes_at(block + 2), out + b * 32,
                [d](int q) { return d * static_cast<float>(q - 8); });
  }
}

void decode_q4_1(const std::byte* in, int64_t n, float* out) {
  constexpr int64_t kBytes = 20;
  for (int64_t b = 0; b < n / 32; ++b) {
    const std::byte* block = in + b * kBytes;
    const float d = f16(load<uint16_t>(block));
    const float m = f16(load<uint16_t>(block + 2));
    put_nibbles(bytes_at(block + 4), out + b * 32,
                [d, m](int q) { return d * static_cast<float>(q) + m; });
  }
}

void decode_iq4_nl(const std::byte* in, int64_t n, float* out) {
  constexpr int64_t kBytes = 18;
  for (int64_t b = 0; b < n / 32; ++b) {
    const std::byte* block = in + b * kBytes;
    const float d = f16(load<uint16_t>(block));
    put_nibbles(bytes_at(block + 2), out + b * 32,
                [d](int q) { return d * static_cast<float>(tensor::kIq4Values[q]); });
  }
}

// 2^(e - 128), for values that are doubled. The two smallest are subnormal.
float half_of_e8m0(uint32_t e) {
  return __builtin_bit_cast(float, e < 2 ? 0x00200000u << e : (e - 1) << 23);
}

void decode_mxfp4(const std::byte* in, int64_t n, float* out) {
  constexpr int64_t kBytes = 17;
  for (int64_t b = 0; b < n / 32; ++b) {
    const std::byte* block = in + b * kBytes;
    const float scale = half_of_e8m0(load<uint8_t>(block));
    put_nibbles(bytes_at(block + 1), out + b * 32,
                [scale](int q) { return scale * static_cast<float>(tensor::kE2m1Doubled[q]); });
  }
}

// Half of the scale of 8 bits (UE4M3): its bits moved to their place in fp32 are 2^-120 of it, also
// where it is subnormal.
float half_of_ue4m3(uint32_t code) {
  if (code == 0x7F) return 0;
  return __builtin_bit_cast(float, (code & 127u) << 20) * 0x1p119f;
}

void decode_nvfp4(const std::byte* in, int64_t n, float* out) {
  constexpr int64_t kBytes = 36;
  for (int64_t b = 0; b < n / 64; ++b) {
    const std::byte* block = in + b * kBytes;
    for (int g = 0; g < 4; ++g) {
      const float scale = half_of_ue4m3(load<uint8_t>(block + g));
      const uint8_t* q = bytes_at(block + 4 + 8 * g);
      float* y = out + b * 64 + g * 16;
      for (int k = 0; k < 8; ++k) {
        y[k] = scale * static_cast<float>(tensor::kE2m1Doubled[q[k] & 15]);
        y[k + 8] = scale * static_cast<float>(tensor::kE2m1Doubled[q[k] >> 4]);
      }
    }
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

void decode_q5_1(const std::byte* in, int64_t n, float* out) {
  constexpr int64_t kBytes = 24;
  for (int64_t b = 0; b < n / 32; ++b) {
    const std::byte* block = in + b * kBytes;
    const float d = f16(load<uint16_t>(block));
    const float m = f16(load<uint16_t>(block + 2));
    const auto high = load<uint32_t>(block + 4);
    const uint8_t* q = bytes_at(block + 8);
    for (int j = 0; j < 16; ++j) {
      const int low5 = (q[j] & 15) | static_cast<int>(((high >> j) & 1u) << 4);
      const int high5 = (q[j] >> 4) | static_cast<int>(((high >> (j + 16)) & 1u) << 4);
      out[b * 32 + j] = d * static_cast<float>(low5) + m;
      out[b * 32 + j + 16] = d * static_cast<float>(high5) + m;
    }
  }
}

// Sixteen weights share a scale in Q2_K, Q3_K and Q6_K: group g lies in half g / 8 of the block, in
// quarter g % 8 / 2 of it.

void decode_q2_k(const std::byte* in, int64_t n, float* out) {
  constexpr int64_t kBytes = 84;
  for (int64_t b = 0; b < n / 256; ++b) {
    const std::byte* block = in + b * kBytes;
    const uint8_t* scales = bytes_at(block);
    const float d = f16(load<uint16_t>(block + 80));
    const float dmin = f16(load<uint16_t>(block + 82));
    for (int g = 0; g < 16; ++g) {
      const uint8_t* q = bytes_at(block + 16) + 32 * (g / 8) + 16 * (g % 2);
      const int shift = g % 8 / 2 * 2;
      const float ds = d * static_cast<float>(scales[g] & 15);
      const float m = dmin * static_cast<float>(scales[g] >> 4);
      float* y = out + b * 256 + g * 16;
      for (int l = 0; l < 16; ++l) y[l] = ds * static_cast<float>((q[l] >> shift) & 3) - m;
    }
  }
}

void decode_q3_k(const std::byte* in, int64_t n, float* out) {
  constexpr int64_t kBytes = 110;
  for (int64_t b = 0; b < n / 256; ++b) {
    const std::byte* block = in + b * kBytes;
    const uint8_t* scales = bytes_at(block + 96);
    const float d = f16(load<uint16_t>(block + 108));
    for (int g = 0; g < 16; ++g) {
      const uint8_t* high = bytes_at(block) + 16 * (g % 2);
      const uint8_t* q = bytes_at(block + 32) + 32 * (g / 8) + 16 * (g % 2);
      const int shift = g % 8 / 2 * 2;
      const int bit = g / 2;
      const int low4 = (scales[g % 8] >> (4 * (g / 8))) & 15;
      const int high2 = (scales[8 + g % 4] >> (2 * (g / 4))) & 3;
      const float ds = d * static_cast<float>((low4 | (high2 << 4)) - 32);
      float* y = out + b * 256 + g * 16;
      for (int l = 0; l < 16; ++l) {
        const int value = ((q[l] >> shift) & 3) | (((high[l] >> bit) & 1) << 2);
        y[l] = ds * static_cast<float>(value - 4);
      }
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

void decode_iq4_xs(const std::byte* in, int64_t n, float* out) {
  constexpr int64_t kBytes = 136;
  for (int64_t b = 0; b < n / 256; ++b) {
    const std::byte* block = in + b * kBytes;
    const float d = f16(load<uint16_t>(block));
    const int high = load<uint16_t>(block + 2);
    const uint8_t* low = bytes_at(block + 4);
    for (int j = 0; j < 8; ++j) {
      const int scale = ((low[j / 2] >> (4 * (j % 2))) & 15) | (((high >> (2 * j)) & 3) << 4);
      const float ds = d * static_cast<float>(scale - 32);
      put_nibbles(bytes_at(block + 8 + 16 * j), out + b * 256 + j * 32,
                  [ds](int q) { return ds * static_cast<float>(tensor::kIq4Values[q]); });
    }
  }
}

}  // namespace

void TOPKNOT_CONCAT(decode_row_, TOPKNOT_ISA)(DType type, const std::byte* in, int64_t n,
                                              float* out) {
  switch (type) {
    case DType::kF32: __builtin_memcpy(out, in, static_cast<size_t>(n) * 4); return;
    case DType::kF16: decode_f16(in, n, out); return;
    case DType::kBF16: decode_bf16(in, n, out); return;
    case DType::kQ4_0: return decode_q4_0(in, n, out);
    case DType::kQ4_1: return decode_q4_1(in, n, out);
    case DType::kQ5_0: return decode_q5_0(in, n, out);
    case DType::kQ5_1: return decode_q5_1(in, n, out);
    case DType::kQ8_0: return decode_q8_0(in, n, out);
    case DType::kQ2_K: return decode_q2_k(in, n, out);
    case DType::kQ3_K: return decode_q3_k(in, n, out);
    case DType::kQ4_K: return decode_q4_k(in, n, out);
    case DType::kQ5_K: return decode_q5_k(in, n, out);
    case DType::kQ6_K: return decode_q6_k(in, n, out);
    case DType::kIQ4_NL: return decode_iq4_nl(in, n, out);
    case DType::kIQ4_XS: return decode_iq4_xs(in, n, out);
    case DType::kMXFP4: return decode_mxfp4(in, n, out);
    case DType::kNVFP4: return decode_nvfp4(in, n, out);
    default: return TOPKNOT_CONCAT(decode_grid_row_, TOPKNOT_ISA)(type, in, n, out);
  }
}

}  // namespace topknot::ops
