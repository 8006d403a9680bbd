#include "tensor/dequantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

namespace topknot::tensor {
namespace {

// One block of bytes b[i] = (37 i + 11) mod 256 with its scales set, fp16 ones to 0.25 and minima
// to 0.125; the expected numbers come from ggml's own decoders (docs/spec/gguf.md 5.2 and 5.3).
struct Vector {
  DType type;
  int d_offset;    // -1: the type has none, see special_scales()
  int min_offset;  // -1: the type has none
  float first[4];
  float middle;
  float last;
  double sum;
  double weighted_sum;  // of (i + 1) y[i]
};

constexpr Vector kVectors[] = {
    {DType::kQ4_0, 0, -1, {-0.75F, 0.5F, 1.75F, -1}, -0.75F, 0, -5.25, -129.5},
    {DType::kQ4_1, 0, 2, {3.875F, 1.125F, 2.375F, 3.625F}, 2.375F, 3.125F, 65.25, 1061.75},
    {DType::kQ5_0, 0, -1, {2.25F, -0.5F, 0.75F, -2}, 3.5F, 0.25F, 3.75, 28},
    {DType::kQ5_1, 0, 2, {4.875F, 6.125F, 7.375F, 4.625F}, 4.875F, 1.375F, 130.25, 2041.25},
    {DType::kQ8_0, 0, -1, {21.25F, 30.5F, -24.25F, -15}, -22.75F, -12, -44, -2020},
    {DType::kQ2_K, 80, 82, {8.25F, 0, 2.75F, 5.5F}, 1.875F, 1.125F, 514.75, 60782.5},
    {DType::kQ3_K, 108, -1, {20.25F, -27, 6.75F, -13.5F}, 0.5F, 10.5F, 239.5, 44286.25},
    {DType::kQ4_K, 0, 2, {78.875F, -6.375F, 32.375F, 71.125F}, 105.75F, 12.125F, 13610, 1893210},
    {DType::kQ5_K, 0, 2, {202.875F, -6.375F, 156.375F, 71.125F}, 261.75F, 27.125F, 29054, 4006862},
    {DType::kQ6_K, 208, -1, {-357.75F, 424, 145.75F, -132.5F}, -87.75F, -15, 1153, 196105},
    {DType::kIQ4_NL, 0, -1, {-8.75F, 6.25F, 28.25F, -12.25F}, -8.75F, 0.25F, -64.25, -1729.75},
    {DType::kIQ4_XS, 0, -1, {16.25F, -0.25F, -17.25F, 20.75F}, -146.25F, -4, -2751.25, -522783.5},
    {DType::kMXFP4, -1, -1, {0, 3, -1, -6}, 1.5F, 3, 12.5, 319},
    {DType::kNVFP4, -1, -1, {-6, 2, -0.5F, -4}, -3, 0.0068359375F, -4.4248046875, -173.8037109375},
    {DType::kIQ2_XXS,
     0,
     -1,
     {-14.78125F, 14.78125F, 8.59375F, -8.59375F},
     -24.21875F,
     -20.15625F,
     190.9375,
     9198.25},
    {DType::kIQ2_XS,
     0,
     -1,
     {-2.75F, 8.59375F, -2.75F, -14.78125F},
     -4.75F,
     -4.75F,
     372.625,
     30799.53125},
    {DType::kIQ2_S,
     0,
     -1,
     {-36.28125F, 21.09375F, -6.75F, 6.75F},
     -2.34375F,
     19.53125F,
     -200.15625,
     -15520.15625},
    {DType::kIQ3_XXS, 0, -1, {-3.25F, 2.25F, -1.75F, 0.75F}, -13.75F, -3.75F, -171, 755.75},
    {DType::kIQ3_S, 0, -1, {-20.25F, 60.75F, -87.75F, -47.25F}, -26.25F, 56.25F, 364, 50697.5},
    {DType::kIQ1_S,
     0,
     -1,
     {-0.65625F, 0.09375F, 0.84375F, 0.84375F},
     -1.96875F,
     -1.09375F,
     5,
     -2957.25},
    {DType::kIQ1_M,
     -1,
     -1,
     {-0.21875F, 1.53125F, -0.21875F, -0.21875F},
     0.46875F,
     -0.46875F,
     10.25,
     -559},
};

// Scales that are no fp16 in one place.
std::vector<std::pair<size_t, int>> special_scales(DType type) {
  switch (type) {
    case DType::kMXFP4: return {{0, 127}};
    case DType::kNVFP4: return {{0, 0x38}, {1, 0x40}, {2, 0x30}, {3, 0x07}};
    default: return {};
  }
}

std::vector<std::byte> vector_block(const Vector& vector) {
  std::vector<std::byte> block(dtype_info(vector.type).block_bytes);
  for (size_t i = 0; i < block.size(); ++i) block[i] = std::byte((37 * i + 11) % 256);
  const auto put = [&](int at, int low, int high) {
    if (at < 0) return;
    block[static_cast<size_t>(at)] = static_cast<std::byte>(low);
    block[static_cast<size_t>(at) + 1] = static_cast<std::byte>(high);
  };
  put(vector.d_offset, 0x00, 0x34);
  put(vector.min_offset, 0x00, 0x30);
  for (const auto& [at, byte] : special_scales(vector.type)) {
    block[at] = static_cast<std::byte>(byte);
  }
  if (vector.type == DType::kIQ1_M) {  // 0x3400, lowest first, in the high nibbles of odd bytes
    for (const auto& [at, nibble] : {std::pair<size_t, int>{49, 0}, {51, 0}, {53, 4}, {55, 3}}) {
      block[at] = (block[at] & std::byte{15}) | static_cast<std::byte>(nibble << 4);
    }
  }
  return block;
}

TEST(Dequantize, BlocksMatchTheReferenceVectors) {
  for (const Vector& vector : kVectors) {
    SCOPED_TRACE(dtype_name(vector.type));
    const std::vector<std::byte> block = vector_block(vector);
    const uint32_t elements = dtype_info(vector.type).block_elements;
    std::vector<float> y(elements);
    dequantize_row(vector.type, block.data(), elements, y.data());
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(y[i], vector.first[i]) << i;
    EXPECT_EQ(y[elements / 2], vector.middle);
    EXPECT_EQ(y[elements - 1], vector.last);
    double sum = 0;
    double weighted_sum = 0;
    for (size_t i = 0; i < elements; ++i) {
      sum += y[i];
      weighted_sum += static_cast<double>(i + 1) * y[i];
    }
    EXPECT_EQ(sum, vector.sum);
    EXPECT_EQ(weighted_sum, vector.weighted_sum);
  }
}

// Three blocks at an odd address must give the one block's values three times, and no more floats.
TEST(Dequantize, RowsOfSeveralBlocksNeedNoAlignment) {
  for (const Vector& vector : kVectors) {
    SCOPED_TRACE(dtype_name(vector.type));
    const std::vector<std::byte> block = vector_block(vector);
    const uint32_t elements = dtype_info(vector.type).block_elements;
    std::vector<std::byte> bytes(1);
    for (int i = 0; i < 3; ++i) bytes.insert(bytes.end(), block.begin(), block.end());
    std::vector<float> one(elements);
    std::vector<float> three(3 * elements + 1, 12345.0F);
    dequantize_row(vector.type, block.data(), elements, one.data());
    dequantize_row(vector.type, bytes.data() + 1, 3 * elements, three.data());
    for (size_t i = 0; i < 3 * elements; ++i) ASSERT_EQ(three[i], one[i % elements]) << i;
    EXPECT_EQ(three.back(), 12345.0F);
  }
}

struct BlockSum {
  DType type;
  uint64_t sum;
};
constexpr BlockSum kBlockSums[] = {
#include "tensor/dequantize_sums.inc"
};

// Bytes and checksum as in tools/make_quant_sums.py.
std::vector<std::byte> random_bytes(uint64_t seed, size_t count) {
  std::vector<std::byte> out(count);
  uint64_t state = seed;
  for (size_t at = 0; at < count; at += 8) {
    uint64_t z = state += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    z ^= z >> 31;
    std::memcpy(out.data() + at, &z, std::min<size_t>(8, count - at));
  }
  return out;
}

uint64_t checksum(const std::vector<float>& values) {
  uint64_t sum = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t bits = std::bit_cast<uint32_t>(values[i]);
    if (std::isnan(values[i])) bits = 0x7FC00000;
    if (values[i] == 0) bits = 0;
    sum += bits * (2 * i + 1);
  }
  return sum;
}

// Another implementation's decoders over blocks of random bits: every entry of every codebook, and
// scales of every kind.
TEST(Dequantize, RandomBlocksMatchTheChecksumsOfTheGgufPackage) {
  constexpr size_t kBlocks = 1024;
  size_t block_types = 0;
  for (const DTypeInfo& info : dtypes()) block_types += info.decoded && info.block_elements > 1;
  EXPECT_EQ(std::size(kBlockSums), block_types);
  for (const BlockSum& each : kBlockSums) {
    const DTypeInfo& info = dtype_info(each.type);
    const auto blocks = random_bytes(static_cast<uint64_t>(each.type), kBlocks * info.block_bytes);
    std::vector<float> y(kBlocks * info.block_elements);
    dequantize_row(each.type, blocks.data(), y.size(), y.data());
    EXPECT_EQ(checksum(y), each.sum) << info.name;
  }
}

TEST(Dequantize, PlainFloats) {
  const float values[3] = {1.5F, -2.0F, 0.0F};
  const uint16_t halves[3] = {0x3E00, 0xC000, 0x0000};
  const uint16_t brains[3] = {0x3FC0, 0xC000, 0x0000};
  for (const auto& [type, data] : {std::pair<DType, const void*>{DType::kF32, values},
                                   {DType::kF16, halves},
                                   {DType::kBF16, brains}}) {
    float out[3] = {9, 9, 9};
    dequantize_row(type, static_cast<const std::byte*>(data), 3, out);
    EXPECT_EQ(std::memcmp(out, values, sizeof(out)), 0) << dtype_name(type);
  }
}

// `decoded` in the table is a promise of this function.
TEST(Dequantize, EveryTypeSaidToBeDecodedIs) {
  for (const DTypeInfo& info : dtypes()) {
    const std::vector<std::byte> zeros(info.block_bytes);
    std::vector<float> out(info.block_elements, 1.0F);
    if (info.decoded) {
      dequantize_row(info.type, zeros.data(), info.block_elements, out.data());
      for (const float value : out) EXPECT_EQ(value, 0.0F) << info.name;
    } else {
      EXPECT_DEATH(dequantize_row(info.type, zeros.data(), info.block_elements, out.data()),
                   "info.decoded")
          << info.name;
    }
  }
}

}  // namespace
}  // namespace topknot::tensor
