// Row decoders of the types whose quants are indices of a grid (IQ2, IQ3, IQ1), eight values at a
// time. Compiled like isa_decode.cc; block layouts: tensor/blocks.h.
#include "ops/cpu/isa_decode.h"
#include "tensor/codebooks.h"

namespace topknot::ops {
namespace {

using tensor::DType;

// The eighth sign makes the number of minus signs even.
uint32_t even_signs(uint32_t seven) {
  uint32_t parity = seven ^ (seven >> 4);
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return seven | ((parity & 1u) << 7);
}

// y[j] = scale * grid[j], negative where bit j of `signs` is set.
template <int kCount>
void put_signed(const int8_t* grid, float scale, uint32_t signs, float* y) {
  for (int j = 0; j < kCount; ++j) {
    const float magnitude = scale * static_cast<float>(grid[j]);
    y[j] = ((signs >> j) & 1u) != 0 ? -magnitude : magnitude;
  }
}

void put_shifted(const int8_t* grid, float scale, float delta, float* y) {
  for (int j = 0; j < 8; ++j) y[j] = scale * (static_cast<float>(grid[j]) + delta);
}

// In each decoder b counts groups of 32 in the block and l the eighths of a group.

void decode_iq2_xxs(const std::byte* block, float* y) {
  const float d = f16(load<uint16_t>(block));
  for (int b = 0; b < 8; ++b) {
    const std::byte* group = block + 2 + 8 * b;
    const uint8_t* entries = bytes_at(group);
    const auto a = load<uint32_t>(group + 4);
    const float scale = d * (0.5f + static_cast<float>(a >> 28)) * 0.25f;
    for (int l = 0; l < 4; ++l) {
      put_signed<8>(tensor::kIq2XxsGrid[entries[l]], scale, even_signs((a >> (7 * l)) & 127u),
                    y + 32 * b + 8 * l);
    }
  }
}

float iq2_scale(float d, uint8_t scales, int l) {
  return d * (0.5f + static_cast<float>((scales >> (4 * (l / 2))) & 15)) * 0.25f;
}

void decode_iq2_xs(const std::byte* block, float* y) {
  const float d = f16(load<uint16_t>(block));
  const uint8_t* scales = bytes_at(block + 66);
  for (int i = 0; i < 32; ++i) {
    const uint32_t word = load<uint16_t>(block + 2 + 2 * i);
    put_signed<8>(tensor::kIq2XsGrid[word & 511u], iq2_scale(d, scales[i / 4], i % 4),
                  even_signs(word >> 9), y + 8 * i);
  }
}

void decode_iq2_s(const std::byte* block, float* y) {
  const float d = f16(load<uint16_t>(block));
  const uint8_t* low = bytes_at(block + 2);
  const uint8_t* signs = bytes_at(block + 34);
  const uint8_t* high = bytes_at(block + 66);
  const uint8_t* scales = bytes_at(block + 74);
  for (int i = 0; i < 32; ++i) {
    const int entry = low[i] | (((high[i / 4] >> (2 * (i % 4))) & 3) << 8);
    put_signed<8>(tensor::kIq2SGrid[entry], iq2_scale(d, scales[i / 4], i % 4), signs[i],
                  y + 8 * i);
  }
}

void decode_iq3_xxs(const std::byte* block, float* y) {
  const float d = f16(load<uint16_t>(block));
  const uint8_t* entries = bytes_at(block + 2);
  for (int b = 0; b < 8; ++b) {
    const auto a = load<uint32_t>(block + 66 + 4 * b);
    const float scale = d * (0.5f + static_cast<float>(a >> 28)) * 0.5f;
    for (int l = 0; l < 4; ++l) {
      const uint32_t signs = even_signs((a >> (7 * l)) & 127u);
      const int i = 4 * b + l;
      put_signed<4>(tensor::kIq3XxsGrid[entries[2 * i]], scale, signs, y + 8 * i);
      put_signed<4>(tensor::kIq3XxsGrid[entries[2 * i + 1]], scale, signs >> 4, y + 8 * i + 4);
    }
  }
}

void decode_iq3_s(const std::byte* block, float* y) {
  const float d = f16(load<uint16_t>(block));
  const uint8_t* low = bytes_at(block + 2);
  const uint8_t* high = bytes_at(block + 66);
  const uint8_t* signs = bytes_at(block + 74);
  const uint8_t* scales = bytes_at(block + 106);
  for (int b = 0; b < 8; ++b) {
    const int s = (scales[b / 2] >> (4 * (b % 2))) & 15;
    const float scale = d * static_cast<float>(1 + 2 * s);
    for (int t = 0; t < 8; ++t) {  // groups of four
      const int entry = low[8 * b + t] | (((high[b] >> t) & 1) << 8);
      put_signed<4>(tensor::kIq3SGrid[entry], scale,
                    static_cast<uint32_t>(signs[4 * b + t / 2]) >> (4 * (t % 2)),
                    y + 32 * b + 4 * t);
    }
  }
}

void decode_iq1_s(const std::byte* block, float* y) {
  const float d = f16(load<uint16_t>(block));
  const uint8_t* low = bytes_at(block + 2);
  for (int b = 0; b < 8; ++b) {
    const uint32_t high = load<uint16_t>(block + 34 + 2 * b);
    const float scale = d * static_cast<float>(2 * ((high >> 12) & 7u) + 1);
    const float delta = (high & 0x8000u) != 0 ? -0.125f : 0.125f;
    for (int l = 0; l < 4; ++l) {
      const uint32_t entry = low[4 * b + l] | (((high >> (3 * l)) & 7u) << 8);
      put_shifted(tensor::kIq1Grid[entry], scale, delta, y + 32 * b + 8 * l);
    }
  }
}

void decode_iq1_m(const std::byte* block, float* y) {
  const uint8_t* low = bytes_at(block);
  const uint8_t* high = bytes_at(block + 32);
  const auto words = load<uint64_t>(block + 48);  // four of 16 bits: scales, and a nibble of d
  const uint64_t d_bits = ((words >> 12) & 0xFu) | ((words >> 24) & 0xF0u) |
                          ((words >> 36) & 0xF00u) | ((words >> 48) & 0xF000u);
  const float d = f16(static_cast<uint16_t>(d_bits));
  for (int i = 0; i < 32; ++i) {
    const uint32_t nibble = static_cast<uint32_t>(high[i / 2]) >> (4 * (i % 2));
    const int pair = i / 2;  // sixteen values share a scale, four scales of 3 bits a word
    const uint64_t s = (words >> (16 * (pair / 4) + 3 * (pair % 4))) & 7u;
    const uint32_t entry = low[i] | ((nibble & 7u) << 8);
    put_shifted(tensor::kIq1Grid[entry], d * static_cast<float>(2 * s + 1),
                (nibble & 8u) != 0 ? -0.125f : 0.125f, y + 8 * i);
  }
}

template <int kBytes, void (*Decode)(const std::byte*, float*)>
void decode_blocks(const std::byte* in, int64_t n, float* out) {
  for (int64_t b = 0; b < n / 256; ++b) Decode(in + b * kBytes, out + b * 256);
}

}  // namespace

void TOPKNOT_CONCAT(decode_grid_row_, TOPKNOT_ISA)(DType type, const std::byte* in, int64_t n,
                                                   float* out) {
  switch (type) {
    case DType::kIQ2_XXS: return decode_blocks<66, decode_iq2_xxs>(in, n, out);
    case DType::kIQ2_XS: return decode_blocks<74, decode_iq2_xs>(in, n, out);
    case DType::kIQ2_S: return decode_blocks<82, decode_iq2_s>(in, n, out);
    case DType::kIQ3_XXS: return decode_blocks<98, decode_iq3_xxs>(in, n, out);
    case DType::kIQ3_S: return decode_blocks<110, decode_iq3_s>(in, n, out);
    case DType::kIQ1_S: return decode_blocks<50, decode_iq1_s>(in, n, out);
    case DType::kIQ1_M: return decode_blocks<56, decode_iq1_m>(in, n, out);
    default: __builtin_trap();  // binding refuses every other type by name
  }
}

}  // namespace topknot::ops
