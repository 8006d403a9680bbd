// Random blocks: what they decode to, and that they depend on nothing but key and index.
#include "synth/blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/strings.h"
#include "tensor/dequantize.h"

namespace topknot::synth {
namespace {

using tensor::DType;
using tensor::DTypeInfo;

constexpr uint64_t kElements = 256 * 1024;

std::vector<DType> generated() {
  std::vector<DType> out;
  for (const DTypeInfo& info : tensor::dtypes()) {
    if (can_generate(info.type)) out.push_back(info.type);
  }
  return out;
}

std::vector<std::byte> make(DType type, const Distribution& values, uint64_t key = 7) {
  std::vector<std::byte> out(tensor::row_bytes(type, kElements));
  fill_blocks(type, values, key, 0, out);
  return out;
}

struct Moments {
  double mean = 0;
  double std = 0;
  bool finite = true;
};

Moments moments(std::span<const float> x) {
  Moments m;
  double squares = 0;
  for (const float each : x) {
    m.finite = m.finite && std::isfinite(each);
    m.mean += each;
    squares += double{each} * each;
  }
  const auto n = static_cast<double>(x.size());
  m.mean /= n;
  m.std = std::sqrt(squares / n - m.mean * m.mean);
  return m;
}

float half_at(std::span<const std::byte> block, size_t at) {
  uint16_t bits = 0;
  std::memcpy(&bits, block.data() + at, sizeof(bits));
  return tensor::f16_to_f32(bits);
}

class Blocks : public testing::TestWithParam<DType> {};

TEST_P(Blocks, HaveTheWantedDeviation) {
  // Fan in of 18432 and of 64, and an embedding.
  for (const float std : {0.0074F, 0.125F, 0.5F}) {
    const auto blocks = make(GetParam(), {.mean = 0, .std = std});
    std::vector<float> x(kElements);
    tensor::dequantize_row(GetParam(), blocks.data(), kElements, x.data());
    const Moments m = moments(x);
    EXPECT_TRUE(m.finite);
    EXPECT_NEAR(m.std, std, 0.05 * std);
    EXPECT_NEAR(m.mean, 0, 0.05 * std);
  }
}

TEST_P(Blocks, AnyRangeIsTheSameAsTheWhole) {
  const Distribution values = {.mean = 0, .std = 0.1F};
  const auto whole = make(GetParam(), values);
  const uint64_t block = tensor::dtype_info(GetParam()).block_bytes;
  const uint64_t blocks = whole.size() / block;
  std::vector<std::byte> pieces(whole.size());
  for (uint64_t at = 0; at < blocks; at += 13) {
    const uint64_t count = std::min<uint64_t>(13, blocks - at);
    fill_blocks(GetParam(), values, 7, at, std::span(pieces).subspan(at * block, count * block));
  }
  EXPECT_EQ(std::memcmp(whole.data(), pieces.data(), whole.size()), 0);
  EXPECT_NE(make(GetParam(), values, 8), whole);
}

std::string type_name(const testing::TestParamInfo<DType>& each) {
  return std::string(tensor::dtype_name(each.param));
}
INSTANTIATE_TEST_SUITE_P(Each, Blocks, testing::ValuesIn(generated()), type_name);

TEST(BlockTypes, AllThatWeightsArePublishedIn) {
  EXPECT_EQ(generated().size(), 24U);
  for (const DType type : generated()) {
    EXPECT_TRUE(tensor::dtype_info(type).decoded) << tensor::dtype_name(type);
  }
  for (const DType none : {DType::kQ8_1, DType::kQ8_K, DType::kI8, DType::kF64, DType::kTQ1_0,
                           DType::kTQ2_0, DType::kQ1_0, DType::kQ2_0}) {
    EXPECT_FALSE(can_generate(none)) << tensor::dtype_name(none);
  }
}

TEST(BlockTypes, MeansOfFloatsAreKept) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ8_0}) {
    const auto blocks = make(type, {.mean = 1, .std = 0.05F});
    std::vector<float> x(kElements);
    tensor::dequantize_row(type, blocks.data(), kElements, x.data());
    const Moments m = moments(x);
    EXPECT_NEAR(m.mean, 1, 0.005);
    EXPECT_NEAR(m.std, 0.05, 0.005);
  }
}

// The scale of each block, wherever the type keeps it, is a finite number that is not 0.
TEST(BlockTypes, ScalesAreFiniteAndNotZero) {
  const struct {
    DType type;
    size_t offset;
  } places[] = {{DType::kQ4_0, 0},   {DType::kQ4_1, 0},   {DType::kQ5_0, 0},
                {DType::kQ5_1, 0},   {DType::kQ2_K, 80},  {DType::kQ3_K, 108},
                {DType::kQ4_K, 0},   {DType::kQ5_K, 0},   {DType::kQ6_K, 208},
                {DType::kIQ4_NL, 0}, {DType::kIQ4_XS, 0}, {DType::kIQ2_XXS, 0},
                {DType::kIQ2_XS, 0}, {DType::kIQ2_S, 0},  {DType::kIQ3_XXS, 0},
                {DType::kIQ3_S, 0},  {DType::kIQ1_S, 0}};
  for (const auto& [type, offset] : places) {
    const auto blocks = make(type, {.mean = 0, .std = 0.0074F});
    const uint64_t bytes = tensor::dtype_info(type).block_bytes;
    for (uint64_t at = 0; at < blocks.size(); at += bytes) {
      const float d = half_at(std::span(blocks).subspan(at, bytes), offset);
      ASSERT_TRUE(std::isfinite(d) && d != 0) << tensor::dtype_name(type) << " " << d;
    }
  }
}

TEST(BlockTypes, Iq1MSpreadsItsScaleOverFourBytes) {
  const auto blocks = make(DType::kIQ1_M, {.mean = 0, .std = 0.1F});
  for (uint64_t at = 0; at < blocks.size(); at += 56) {
    uint16_t bits = 0;
    for (int i = 0; i < 4; ++i) {
      const auto odd = static_cast<uint32_t>(blocks[at + 49 + 2 * static_cast<uint64_t>(i)]);
      bits = static_cast<uint16_t>(bits | (odd >> 4) << 4 * i);
    }
    const double d = tensor::f16_to_f32(bits);
    ASSERT_NEAR(std::abs(d) * std::sqrt(85 * 0.609802), 0.1, 0.001);
  }
}

TEST(TensorKeys, DependOnSeedAndName) {
  EXPECT_EQ(tensor_key(1, "a"), tensor_key(1, "a"));
  EXPECT_NE(tensor_key(1, "a"), tensor_key(2, "a"));
  EXPECT_NE(tensor_key(1, "a"), tensor_key(1, "b"));
}

}  // namespace
}  // namespace topknot::synth
