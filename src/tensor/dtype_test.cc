#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <set>

namespace topknot::tensor {
namespace {

TEST(DType, EveryKnownIdIsFoundByItsIdAndHasItsOwnName) {
  std::set<std::string_view> names;
  for (const DTypeInfo& info : dtypes()) {
    EXPECT_EQ(find_dtype(static_cast<uint32_t>(info.type)), &info);
    EXPECT_EQ(&dtype_info(info.type), &info);
    EXPECT_GT(info.block_elements, 0u);
    EXPECT_GT(info.block_bytes, 0u);
    names.insert(info.name);
  }
  EXPECT_EQ(names.size(), dtypes().size());
  EXPECT_EQ(dtypes().size(), 35u);
}

TEST(DType, RemovedPrivateAndFutureIdsAreUnknown) {
  for (const uint32_t id : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u, 43u, 97u, 137u, 0xFFFFFFFFu}) {
    EXPECT_EQ(find_dtype(id), nullptr) << id;
  }
}

TEST(DType, UnknownIdsAreNamedWhereTheNameIsKnown) {
  EXPECT_EQ(describe_unknown_dtype(139), "type id 139 (IQ4_K, private to ik_llama.cpp)");
  EXPECT_EQ(describe_unknown_dtype(4), "type id 4 (Q4_2, removed from ggml)");
  EXPECT_EQ(describe_unknown_dtype(1000),
            "type id 1000 (newer than this build, or private to another engine)");
}

// Bits per weight as ggml publishes them: a second source for the block sizes.
TEST(DType, BitsPerWeight) {
  const auto bits = [](DType type) {
    const DTypeInfo& info = dtype_info(type);
    return 8.0 * info.block_bytes / info.block_elements;
  };
  EXPECT_EQ(bits(DType::kF32), 32);
  EXPECT_EQ(bits(DType::kBF16), 16);
  EXPECT_EQ(bits(DType::kQ4_0), 4.5);
  EXPECT_EQ(bits(DType::kQ4_1), 5.0);
  EXPECT_EQ(bits(DType::kQ5_0), 5.5);
  EXPECT_EQ(bits(DType::kQ5_1), 6.0);
  EXPECT_EQ(bits(DType::kQ8_0), 8.5);
  EXPECT_EQ(bits(DType::kQ2_K), 2.625);
  EXPECT_EQ(bits(DType::kQ3_K), 3.4375);
  EXPECT_EQ(bits(DType::kQ4_K), 4.5);
  EXPECT_EQ(bits(DType::kQ5_K), 5.5);
  EXPECT_EQ(bits(DType::kQ6_K), 6.5625);
  EXPECT_EQ(bits(DType::kIQ2_XXS), 2.0625);
  EXPECT_EQ(bits(DType::kIQ2_XS), 2.3125);
  EXPECT_EQ(bits(DType::kIQ2_S), 2.5625);
  EXPECT_EQ(bits(DType::kIQ3_XXS), 3.0625);
  EXPECT_EQ(bits(DType::kIQ3_S), 3.4375);
  EXPECT_EQ(bits(DType::kIQ1_S), 1.5625);
  EXPECT_EQ(bits(DType::kIQ1_M), 1.75);
  EXPECT_EQ(bits(DType::kIQ4_NL), 4.5);
  EXPECT_EQ(bits(DType::kIQ4_XS), 4.25);
  EXPECT_EQ(bits(DType::kTQ1_0), 1.6875);
  EXPECT_EQ(bits(DType::kTQ2_0), 2.0625);
  EXPECT_EQ(bits(DType::kMXFP4), 4.25);
  EXPECT_EQ(bits(DType::kNVFP4), 4.5);
  EXPECT_EQ(bits(DType::kQ1_0), 1.125);
  EXPECT_EQ(bits(DType::kQ2_0), 2.25);
}

TEST(DType, RowBytes) {
  EXPECT_EQ(row_bytes(DType::kQ8_0, 192), 204u);
  EXPECT_EQ(row_bytes(DType::kQ6_K, 6144), 24u * 210u);
  EXPECT_EQ(row_bytes(DType::kF32, 3), 12u);
  EXPECT_EQ(row_bytes(DType::kQ4_K, 0), 0u);
  EXPECT_DEATH(row_bytes(DType::kQ4_K, 192), "block_elements");
}

}  // namespace
}  // namespace topknot::tensor
