#include "tensor/dequantize.h"

#include <bit>
#include <cstring>

#include "base/assert.h"
#include "tensor/blocks.h"

static_assert(std::endian::native == std::endian::little, "block fields are read as they lie");

namespace topknot::tensor {
namespace {

float half_at(const uint8_t (&bytes)[2]) {
  return f16_to_f32(static_cast<uint16_t>(bytes[0] | bytes[1] << 8));
}

void decode(const BlockQ8_0& block, float* y) {
  const float d = half_at(block.d);
  for (int j = 0; j < 32; ++j) y[j] = d * static_cast<float>(block.q[j]);
}

void decode(const BlockQ5_0& block, float* y) {
  const float d = half_at(block.d);
  uint32_t high = 0;
  std::memcpy(&high, block.qh, sizeof(high));
  for (int j = 0; j < 16; ++j) {
    const int first = (block.qs[j] & 15) | static_cast<int>(high >> j & 1) << 4;
    const int second = (block.qs[j] >> 4) | static_cast<int>(high >> (j + 16) & 1) << 4;
    y[j] = d * static_cast<float>(first - 16);
    y[j + 16] = d * static_cast<float>(second - 16);
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
    case DType::kQ8_0: return decode_blocks<BlockQ8_0>(blocks, elements, out);
    case DType::kQ5_0: return decode_blocks<BlockQ5_0>(blocks, elements, out);
    case DType::kQ4_K: return decode_blocks<BlockQ4_K>(blocks, elements, out);
    case DType::kQ5_K: return decode_blocks<BlockQ5_K>(blocks, elements, out);
    case DType::kQ6_K: return decode_blocks<BlockQ6_K>(blocks, elements, out);
    default: TOPKNOT_ASSERT(!info.decoded);  // the table says more than this switch
  }
}

}  // namespace topknot::tensor
