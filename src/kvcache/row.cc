#include "kvcache/row.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/assert.h"
#include "base/checked_math.h"
#include "tensor/dequantize.h"

namespace topknot::kvcache {
namespace {

constexpr float kLargestE4m3 = 448;
constexpr float kLargestQ8 = 127;

void write_bf16(const float* values, int64_t count, std::byte* out) {
  for (int64_t i = 0; i < count; ++i) {
    const uint16_t bits = tensor::f32_to_bf16(values[i]);
    std::memcpy(out + i * 2, &bits, 2);
  }
}

void read_bf16(const std::byte* in, int64_t count, float* values) {
  for (int64_t i = 0; i < count; ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, in + i * 2, 2);
    values[i] = tensor::bf16_to_f32(bits);
  }
}

// NaN if one of them is.
float largest_magnitude(const float* values, int64_t count) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (!(std::fabs(values[i]) <= largest)) largest = std::fabs(values[i]);
    if (std::isnan(largest)) break;
  }
  return largest;
}

void write_fp8_ds(const CacheRows& rows, const float* values, std::byte* out) {
  const int64_t scaled = rows.width - rows.tail;
  const int64_t groups = ceil_div(scaled, kFp8Group);
  for (int64_t g = 0; g < groups; ++g) {
    const float* in = values + g * kFp8Group;
    const int64_t count = std::min(kFp8Group, scaled - g * kFp8Group);
    const float largest = largest_magnitude(in, count);
    const float scale = std::isnan(largest) ? NAN : largest > 0 ? largest / kLargestE4m3 : 1;
    for (int64_t i = 0; i < count; ++i) {
      out[g * kFp8Group + i] = static_cast<std::byte>(tensor::f32_to_e4m3(in[i] / scale));
    }
    std::memcpy(out + scaled + g * 4, &scale, 4);
  }
  write_bf16(values + scaled, rows.tail, out + scaled + groups * 4);
}

void read_fp8_ds(const CacheRows& rows, const std::byte* in, float* values) {
  const int64_t scaled = rows.width - rows.tail;
  const int64_t groups = ceil_div(scaled, kFp8Group);
  for (int64_t i = 0; i < scaled; ++i) {
    float scale = 0;
    std::memcpy(&scale, in + scaled + i / kFp8Group * 4, 4);
    values[i] = tensor::e4m3_to_f32(static_cast<uint8_t>(in[i])) * scale;
  }
  read_bf16(in + scaled + groups * 4, rows.tail, values + scaled);
}

void write_q8_0(const CacheRows& rows, const float* values, std::byte* out) {
  for (int64_t begin = 0; begin < rows.width; begin += kQ8Block, out += kQ8BlockBytes) {
    const int64_t count = std::min(kQ8Block, rows.width - begin);
    const float* in = values + begin;
    const uint16_t scale_bits = tensor::f32_to_f16(largest_magnitude(in, count) / kLargestQ8);
    const float scale = tensor::f16_to_f32(scale_bits);
    std::memcpy(out, &scale_bits, 2);
    for (int64_t i = 0; i < kQ8Block; ++i) {
      const float value = i < count && scale > 0 ? std::nearbyint(in[i] / scale) : 0;
      // The scale was rounded, so the largest may come out a step too large.
      const float held = std::clamp(value, -kLargestQ8, kLargestQ8);
      out[2 + i] = static_cast<std::byte>(static_cast<int8_t>(held));
    }
  }
}

void read_q8_0(const CacheRows& rows, const std::byte* in, float* values) {
  for (int64_t i = 0; i < rows.width; ++i) {
    const std::byte* block = in + i / kQ8Block * kQ8BlockBytes;
    uint16_t scale = 0;
    std::memcpy(&scale, block, 2);
    const auto quant = static_cast<int8_t>(block[2 + i % kQ8Block]);
    values[i] = tensor::f16_to_f32(scale) * static_cast<float>(quant);
  }
}

}  // namespace

int64_t row_bytes(KvFormat format, int64_t width, int64_t tail) {
  switch (format) {
    case KvFormat::kF32: return width * 4;
    case KvFormat::kBf16:
    case KvFormat::kF16: return width * 2;
    case KvFormat::kFp8E4m3: return width;
    case KvFormat::kFp8Ds:
      return width - tail + 4 * ceil_div<int64_t>(width - tail, kFp8Group) + 2 * tail;
    case KvFormat::kQ8_0: return ceil_div<int64_t>(width, kQ8Block) * kQ8BlockBytes;
  }
  return 0;
}

void write_row(const CacheRows& rows, int64_t slot, const float* values) {
  TOPKNOT_ASSERT(slot >= 0 && slot < rows.slots);
  std::byte* row = rows.row(slot);
  switch (rows.format) {
    case KvFormat::kF32: std::memcpy(row, values, static_cast<size_t>(rows.width) * 4); return;
    case KvFormat::kBf16: write_bf16(values, rows.width, row); return;
    case KvFormat::kFp8Ds: write_fp8_ds(rows, values, row); return;
    case KvFormat::kQ8_0: write_q8_0(rows, values, row); return;
    case KvFormat::kF16:
    case KvFormat::kFp8E4m3: break;
  }
  TOPKNOT_ASSERT(!"a row format the plan must have refused");
}

void read_row(const CacheRows& rows, int64_t slot, float* values) {
  TOPKNOT_ASSERT(slot >= 0 && slot < rows.slots);
  const std::byte* row = rows.row(slot);
  switch (rows.format) {
    case KvFormat::kF32: std::memcpy(values, row, static_cast<size_t>(rows.width) * 4); return;
    case KvFormat::kBf16: read_bf16(row, rows.width, values); return;
    case KvFormat::kFp8Ds: read_fp8_ds(rows, row, values); return;
    case KvFormat::kQ8_0: read_q8_0(rows, row, values); return;
    case KvFormat::kF16:
    case KvFormat::kFp8E4m3: break;
  }
  TOPKNOT_ASSERT(!"a row format the plan must have refused");
}

}  // namespace topknot::kvcache
