#include "tensor/dequantize.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/assert.h"
#include "tensor/blocks.h"
#include "tensor/codebooks.h"

static_assert(std::endian::native == std::endian::little, "block fields are read as they lie");

namespace topknot::tensor {
namespace {

float half_at(const uint8_t (&bytes)[2]) {
  return f16_to_f32(static_cast<uint16_t>(bytes[0] | bytes[1] << 8));
}

uint32_t word_at(const uint8_t* bytes) {
  uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

int half_word_at(const uint8_t* bytes) { return bytes[0] | bytes[1] << 8; }

// A scale of 8 bits in front of E2M1 values that are doubled: 2^(e - 128). The two smallest are
// subnormal.
float half_of_e8m0(uint8_t e) {
  if (e < 2) return std::bit_cast<float>(0x00200000U << e);
  return std::bit_cast<float>(static_cast<uint32_t>(e - 1) << 23);
}

// Four bits of exponent and three of mantissa; the top bit counts for nothing, the code of NaN is
// 0.
float ue4m3_to_f32(uint8_t code) {
  const int exponent = code >> 3 & 15;
  const auto mantissa = static_cast<float>(code & 7);
  if (code == 0x7F) return 0;
  if (exponent == 0) return mantissa * 0x1p-9F;
  return std::ldexp(1 + mantissa / 8, exponent - 7);
}

float with_sign(float value, int signs, int j) { return (signs >> j & 1) != 0 ? -value : value; }

void decode(const BlockQ4_0& block, float* y) {
  const float d = half_at(block.d);
  for (int j = 0; j < 16; ++j) {
    y[j] = d * static_cast<float>((block.qs[j] & 15) - 8);
    y[j + 16] = d * static_cast<float>((block.qs[j] >> 4) - 8);
  }
}

void decode(const BlockQ4_1& block, float* y) {
  const float d = half_at(block.d);
  const float m = half_at(block.m);
  for (int j = 0; j < 16; ++j) {
    y[j] = d * static_cast<float>(block.qs[j] & 15) + m;
    y[j + 16] = d * static_cast<float>(block.qs[j] >> 4) + m;
  }
}

void decode(const BlockQ8_0& block, float* y) {
  const float d = half_at(block.d);
  for (int j = 0; j < 32; ++j) y[j] = d * static_cast<float>(block.q[j]);
}

void decode(const BlockQ5_0& block, float* y) {
  const float d = half_at(block.d);
  const uint32_t high = word_at(block.qh);
  for (int j = 0; j < 16; ++j) {
    const int first = (block.qs[j] & 15) | static_cast<int>(high >> j & 1) << 4;
    const int second = (block.qs[j] >> 4) | static_cast<int>(high >> (j + 16) & 1) << 4;
    y[j] = d * static_cast<float>(first - 16);
    y[j + 16] = d * static_cast<float>(second - 16);
  }
}

void decode(const BlockQ5_1& block, float* y) {
  const float d = half_at(block.d);
  const float m = half_at(block.m);
  const uint32_t high = word_at(block.qh);
  for (int j = 0; j < 16; ++j) {
    const int first = (block.qs[j] & 15) | static_cast<int>(high >> j & 1) << 4;
    const int second = (block.qs[j] >> 4) | static_cast<int>(high >> (j + 16) & 1) << 4;
    y[j] = d * static_cast<float>(first) + m;
    y[j + 16] = d * static_cast<float>(second) + m;
  }
}

void decode(const BlockQ2_K& block, float* y) {
  const float d = half_at(block.d);
  const float dmin = half_at(block.dmin);
  for (int i = 0; i < 256; ++i) {
    const int quarter = i % 128 / 32;
    const int q = block.qs[32 * (i / 128) + i % 32] >> 2 * quarter & 3;
    const int scales = block.scales[i / 16];
    const float scale = d * static_cast<float>(scales & 15);
    const float min = dmin * static_cast<float>(scales >> 4);
    y[i] = scale * static_cast<float>(q) - min;
  }
}

void decode(const BlockQ3_K& block, float* y) {
  const float d = half_at(block.d);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128;
    const int quarter = i % 128 / 32;
    const int l = i % 32;
    const int low = block.qs[32 * half + l] >> 2 * quarter & 3;
    const int high = block.hmask[l] >> (4 * half + quarter) & 1;
    const float scale = d * static_cast<float>(q3_k_scale(block.scales, i / 16));
    y[i] = scale * static_cast<float>((low | high << 2) - 4);
  }
}

void decode(const BlockQ4_K& block, float* y) {
  const float d = half_at(block.d);
  const float dmin = half_at(block.dmin);
  for (int j = 0; j < 8; ++j) {
    const ScaleMin packed = q4_k_scale(block.scales, j);
    const float scale = d * static_cast<float>(packed.scale);
    const float min = dmin * static_cast<float>(packed.min);
    for (int l = 0; l < 32; ++l) {
      const int q = block.qs[32 * (j / 2) + l] >> 4 * (j % 2) & 15;
      y[32 * j + l] = scale * static_cast<float>(q) - min;
    }
  }
}

void decode(const BlockQ5_K& block, float* y) {
  const float d = half_at(block.d);
  const float dmin = half_at(block.dmin);
  for (int j = 0; j < 8; ++j) {
    const ScaleMin packed = q4_k_scale(block.scales, j);
    const float scale = d * static_cast<float>(packed.scale);
    const float min = dmin * static_cast<float>(packed.min);
    for (int l = 0; l < 32; ++l) {
      const int low = block.qs[32 * (j / 2) + l] >> 4 * (j % 2) & 15;
      const int q = low | (block.qh[l] >> j & 1) << 4;
      y[32 * j + l] = scale * static_cast<float>(q) - min;
    }
  }
}

void decode(const BlockQ6_K& block, float* y) {
  const float d = half_at(block.d);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128;
    const int quarter = i % 128 / 32;
    const int l = i % 32;
    const int low = block.ql[64 * half + 32 * (quarter & 1) + l] >> 4 * (quarter / 2) & 15;
    const int high = block.qh[32 * half + l] >> 2 * quarter & 3;
    const float scale = d * static_cast<float>(block.scales[i / 16]);
    y[i] = scale * static_cast<float>((low | high << 4) - 32);
  }
}

void decode(const BlockIQ4_NL& block, float* y) {
  const float d = half_at(block.d);
  for (int j = 0; j < 16; ++j) {
    y[j] = d * static_cast<float>(kIq4Values[block.qs[j] & 15]);
    y[j + 16] = d * static_cast<float>(kIq4Values[block.qs[j] >> 4]);
  }
}

void decode(const BlockIQ4_XS& block, float* y) {
  const float d = half_at(block.d);
  const int high = half_word_at(block.scales_h);
  for (int i = 0; i < 256; ++i) {
    const int j = i / 32;
    const int l = i % 32;
    const int scale = (block.scales_l[j / 2] >> 4 * (j % 2) & 15) | (high >> 2 * j & 3) << 4;
    const int q = block.qs[16 * j + l % 16] >> 4 * (l / 16) & 15;
    y[i] = d * static_cast<float>(scale - 32) * static_cast<float>(kIq4Values[q]);
  }
}

void decode(const BlockMXFP4& block, float* y) {
  const float scale = half_of_e8m0(block.e);
  for (int j = 0; j < 16; ++j) {
    y[j] = scale * static_cast<float>(kE2m1Doubled[block.qs[j] & 15]);
    y[j + 16] = scale * static_cast<float>(kE2m1Doubled[block.qs[j] >> 4]);
  }
}

void decode(const BlockNVFP4& block, float* y) {
  for (int i = 0; i < 64; ++i) {
    const int group = i / 16;
    const int k = i % 16;
    const float scale = ue4m3_to_f32(block.scale[group]) / 2;
    const int q = block.qs[8 * group + k % 8] >> 4 * (k / 8) & 15;
    y[i] = scale * static_cast<float>(kE2m1Doubled[q]);
  }
}

// A place in the formats with a grid.
struct GridPlace {
  int b, l, j;
  explicit GridPlace(int i) : b(i / 32), l(i % 32 / 8), j(i % 8) {}
};

void decode(const BlockIQ2_XXS& block, float* y) {
  const float d = half_at(block.d);
  for (int i = 0; i < 256; ++i) {
    const auto [b, l, j] = GridPlace(i);
    const uint32_t a = word_at(block.qs + 8 * b + 4);
    const float scale = d * (0.5F + static_cast<float>(a >> 28)) / 4;
    const int8_t* grid = kIq2XxsGrid[block.qs[8 * b + l]];
    const int signs = even_signs(static_cast<int>(a >> 7 * l & 127));
    y[i] = scale * with_sign(grid[j], signs, j);
  }
}

void decode(const BlockIQ2_XS& block, float* y) {
  const float d = half_at(block.d);
  for (int i = 0; i < 256; ++i) {
    const auto [b, l, j] = GridPlace(i);
    const int word = half_word_at(block.qs + 2 * (4 * b + l));
    const int s = block.scales[b] >> 4 * (l / 2) & 15;
    const float scale = d * (0.5F + static_cast<float>(s)) / 4;
    y[i] = scale * with_sign(kIq2XsGrid[word & 511][j], even_signs(word >> 9), j);
  }
}

void decode(const BlockIQ2_S& block, float* y) {
  const float d = half_at(block.d);
  for (int i = 0; i < 256; ++i) {
    const auto [b, l, j] = GridPlace(i);
    const int entry = block.qs[4 * b + l] | (block.qh[b] >> 2 * l & 3) << 8;
    const int s = block.scales[b] >> 4 * (l / 2) & 15;
    const float scale = d * (0.5F + static_cast<float>(s)) / 4;
    y[i] = scale * with_sign(kIq2SGrid[entry][j], block.signs[4 * b + l], j);
  }
}

void decode(const BlockIQ3_XXS& block, float* y) {
  const float d = half_at(block.d);
  for (int i = 0; i < 256; ++i) {
    const auto [b, l, j] = GridPlace(i);
    const uint32_t a = word_at(block.a + 4 * b);
    const float scale = d * (0.5F + static_cast<float>(a >> 28)) / 2;
    const int8_t* grid = kIq3XxsGrid[block.qs[8 * b + 2 * l + j / 4]];
    const int signs = even_signs(static_cast<int>(a >> 7 * l & 127));
    y[i] = scale * with_sign(grid[j % 4], signs, j);
  }
}

void decode(const BlockIQ3_S& block, float* y) {
  const float d = half_at(block.d);
  for (int i = 0; i < 256; ++i) {
    const auto [b, l, j] = GridPlace(i);
    const int t = 2 * l + j / 4;
    const int entry = block.qs[8 * b + t] | (block.qh[b] >> t & 1) << 8;
    const int s = block.scales[b / 2] >> 4 * (b % 2) & 15;
    const float scale = d * static_cast<float>(1 + 2 * s);
    y[i] = scale * with_sign(kIq3SGrid[entry][j % 4], block.signs[4 * b + l], j);
  }
}

void decode(const BlockIQ1_S& block, float* y) {
  const float d = half_at(block.d);
  for (int i = 0; i < 256; ++i) {
    const auto [b, l, j] = GridPlace(i);
    const int high = half_word_at(block.qh + 2 * b);
    const int entry = block.qs[4 * b + l] | (high >> 3 * l & 7) << 8;
    const float delta = (high & 0x8000) != 0 ? -0.125F : 0.125F;
    const float scale = d * static_cast<float>(2 * (high >> 12 & 7) + 1);
    y[i] = scale * (static_cast<float>(kIq1Grid[entry][j]) + delta);
  }
}

void decode(const BlockIQ1_M& block, float* y) {
  uint32_t d_bits = 0;
  for (int k = 0; k < 4; ++k) d_bits |= static_cast<uint32_t>(block.sc[2 * k + 1] >> 4) << 4 * k;
  const float d = f16_to_f32(static_cast<uint16_t>(d_bits));
  for (int i = 0; i < 256; ++i) {
    const auto [b, l, j] = GridPlace(i);
    const int high = block.qh[2 * b + l / 2] >> 4 * (l % 2) & 15;
    const int entry = block.qs[4 * b + l] | (high & 7) << 8;
    const float delta = (high & 8) != 0 ? -0.125F : 0.125F;
    const int s = half_word_at(block.sc + 2 * (b / 2)) >> (6 * (b % 2) + 3 * (l / 2)) & 7;
    const float scale = d * static_cast<float>(2 * s + 1);
    y[i] = scale * (static_cast<float>(kIq1Grid[entry][j]) + delta);
  }
}

template <class Block>
void decode_blocks(const std::byte* bytes, uint64_t elements, float* out) {
  for (uint64_t i = 0; i < elements; i += Block::kElements) {
    Block block;
    std::memcpy(&block, bytes, sizeof(block));
    decode(block, out + i);
    bytes += sizeof(block);
  }
}

template <float (*Convert)(uint16_t)>
void decode_halves(const std::byte* bytes, uint64_t elements, float* out) {
  for (uint64_t i = 0; i < elements; ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, bytes + 2 * i, sizeof(bits));
    out[i] = Convert(bits);
  }
}

}  // namespace

void dequantize_row(DType type, const std::byte* blocks, uint64_t elements, float* out) {
  const DTypeInfo& info = dtype_info(type);
  TOPKNOT_ASSERT(info.decoded && elements % info.block_elements == 0);
  switch (type) {
    case DType::kF32: std::memcpy(out, blocks, elements * sizeof(float)); return;
    case DType::kF16: return decode_halves<f16_to_f32>(blocks, elements, out);
    case DType::kBF16: return decode_halves<bf16_to_f32>(blocks, elements, out);
    case DType::kQ4_0: return decode_blocks<BlockQ4_0>(blocks, elements, out);
    case DType::kQ4_1: return decode_blocks<BlockQ4_1>(blocks, elements, out);
    case DType::kQ5_0: return decode_blocks<BlockQ5_0>(blocks, elements, out);
    case DType::kQ5_1: return decode_blocks<BlockQ5_1>(blocks, elements, out);
    case DType::kQ8_0: return decode_blocks<BlockQ8_0>(blocks, elements, out);
    case DType::kQ2_K: return decode_blocks<BlockQ2_K>(blocks, elements, out);
    case DType::kQ3_K: return decode_blocks<BlockQ3_K>(blocks, elements, out);
    case DType::kQ4_K: return decode_blocks<BlockQ4_K>(blocks, elements, out);
    case DType::kQ5_K: return decode_blocks<BlockQ5_K>(blocks, elements, out);
    case DType::kQ6_K: return decode_blocks<BlockQ6_K>(blocks, elements, out);
    case DType::kIQ4_NL: return decode_blocks<BlockIQ4_NL>(blocks, elements, out);
    case DType::kIQ4_XS: return decode_blocks<BlockIQ4_XS>(blocks, elements, out);
    case DType::kIQ2_XXS: return decode_blocks<BlockIQ2_XXS>(blocks, elements, out);
    case DType::kIQ2_XS: return decode_blocks<BlockIQ2_XS>(blocks, elements, out);
    case DType::kIQ2_S: return decode_blocks<BlockIQ2_S>(blocks, elements, out);
    case DType::kIQ3_XXS: return decode_blocks<BlockIQ3_XXS>(blocks, elements, out);
    case DType::kIQ3_S: return decode_blocks<BlockIQ3_S>(blocks, elements, out);
    case DType::kIQ1_S: return decode_blocks<BlockIQ1_S>(blocks, elements, out);
    case DType::kIQ1_M: return decode_blocks<BlockIQ1_M>(blocks, elements, out);
    case DType::kMXFP4: return decode_blocks<BlockMXFP4>(blocks, elements, out);
    case DType::kNVFP4: return decode_blocks<BlockNVFP4>(blocks, elements, out);
    default: TOPKNOT_ASSERT(!info.decoded);  // the table says more than this switch
  }
}

}  // namespace topknot::tensor
