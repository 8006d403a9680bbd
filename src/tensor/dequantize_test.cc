#include "tensor/dequantize.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <vector>

namespace topknot::tensor {
namespace {

// One block of bytes b[i] = (37 i + 11) mod 256 with its fp16 factors set to 0.25 and 0.125; the
// expected numbers come from ggml's own decoders.
struct Vector {
  DType type;
  size_t d_offset;
  int min_offset;  // -1: the type has none
  float first[4];
  float middle;
  float last;
  double sum;
  double weighted_sum;  // of (i + 1) y[i]
};

constexpr Vector kVectors[] = {
    {DType::kQ5_0, 0, -1, {2.25F, -0.5F, 0.75F, -2.0F}, 3.5F, 0.25F, 3.75, 28},
    {DType::kQ8_0, 0, -1, {21.25F, 30.5F, -24.25F, -15.0F}, -22.75F, -12.0F, -44, -2020},
    {DType::kQ4_K, 0, 2, {78.875F, -6.375F, 32.375F, 71.125F}, 105.75F, 12.125F, 13610, 1893210},
    {DType::kQ5_K, 0, 2, {202.875F, -6.375F, 156.375F, 71.125F}, 261.75F, 27.125F, 29054, 4006862},
    {DType::kQ6_K, 208, -1, {-357.75F, 424.0F, 145.75F, -132.5F}, -87.75F, -15.0F, 1153, 196105},
};

std::vector<std::byte> vector_block(const Vector& vector) {
  std::vector<std::byte> block(dtype_info(vector.type).block_bytes);
  for (size_t i = 0; i < block.size(); ++i) block[i] = std::byte((37 * i + 11) % 256);
  block[vector.d_offset] = std::byte{0x00};
  block[vector.d_offset + 1] = std::byte{0x34};
  if (vector.min_offset >= 0) {
    block[static_cast<size_t>(vector.min_offset)] = std::byte{0x00};
    block[static_cast<size_t>(vector.min_offset) + 1] = std::byte{0x30};
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
