#include "kvcache/row.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "tensor/dequantize.h"

namespace topknot::kvcache {
namespace {

constexpr int64_t kSlots = 3;

struct Held {
  std::vector<std::byte> bytes;
  CacheRows rows;
};

Held make_rows(KvFormat format, int64_t width, int64_t tail) {
  Held held;
  const int64_t bytes = row_bytes(format, width, tail);
  held.bytes.resize(static_cast<size_t>(kSlots * bytes), std::byte{0x5A});
  held.rows = {format, held.bytes.data(), width, bytes, kSlots, tail};
  return held;
}

TEST(Row, BytesAreThoseOfThePublishedLayouts) {
  EXPECT_EQ(row_bytes(KvFormat::kF32, 576, 64), 2304);
  EXPECT_EQ(row_bytes(KvFormat::kBf16, 576, 64), 1152);
  EXPECT_EQ(row_bytes(KvFormat::kFp8Ds, 576, 64), 656);
  EXPECT_EQ(row_bytes(KvFormat::kFp8Ds, 128, 0), 132);
  EXPECT_EQ(row_bytes(KvFormat::kQ8_0, 576, 64), 612);
}

// The relative step of a value at half its group's maximum or more: 2^-4 of e4m3, 1/254 of q8_0.
// A smaller value may be off by half a step of the largest one (q8_0).
TEST(Row, WhatIsWrittenIsReadBackWithinHalfAStep) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const KvFormat format :
       {KvFormat::kF32, KvFormat::kBf16, KvFormat::kFp8Ds, KvFormat::kQ8_0}) {
    for (const auto& [width, tail] : {std::pair{576, 64}, {512, 0}, {128, 0}, {48, 16}, {200, 8}}) {
      const Held held = make_rows(format, width, tail);
      std::vector<float> in(static_cast<size_t>(width)), out(in);
      float largest = 0;
      for (float& v : in) largest = std::max(largest, std::fabs(v = normal(random)));
      write_row(held.rows, 1, in.data());
      read_row(held.rows, 1, out.data());
      for (size_t i = 0; i < in.size(); ++i) {
        const bool in_tail = format == KvFormat::kFp8Ds && static_cast<int64_t>(i) >= width - tail;
        const float magnitude = std::fabs(in[i]);
        const float limit = format == KvFormat::kF32               ? 0
                            : format == KvFormat::kBf16 || in_tail ? magnitude * 0x1p-8F
                            : format == KvFormat::kQ8_0
                                ? largest / 127 * (0.5F + 127 * 0x1p-11F)
                                : std::max(magnitude * 0x1p-4F, largest / 448 * 0x1p-10F);
        ASSERT_LE(std::fabs(in[i] - out[i]), limit * 1.0001F)
            << kv_format_name(format) << ' ' << width << " at " << i;
      }
      // Neighbours are untouched.
      const auto bytes = static_cast<size_t>(held.rows.row_bytes);
      EXPECT_EQ(held.bytes[bytes - 1], std::byte{0x5A});
      EXPECT_EQ(held.bytes[2 * bytes], std::byte{0x5A});
    }
  }
}

TEST(Row, Fp8PlacesElementsScalesAndTail) {
  const Held held = make_rows(KvFormat::kFp8Ds, 576, 64);
  std::vector<float> in(576, 0.0F);
  in[130] = 448 * 3;  // group 1: scale 3
  in[131] = -3;
  in[575] = 1.5F;
  write_row(held.rows, 0, in.data());
  const auto* row = reinterpret_cast<const uint8_t*>(held.rows.row(0));
  EXPECT_EQ(row[130], 0x7E);
  EXPECT_EQ(row[131], 0xB8);  // -1
  float scales[4];
  std::memcpy(scales, row + 512, sizeof scales);
  EXPECT_EQ(scales[0], 1) << "a group of zeros has a scale that is a number";
  EXPECT_EQ(scales[1], 3);
  EXPECT_EQ(row[654], 0xC0);  // bf16 1.5 is 0x3FC0
  EXPECT_EQ(row[655], 0x3F);
}

TEST(Row, NanStaysNan) {
  for (const KvFormat format :
       {KvFormat::kF32, KvFormat::kBf16, KvFormat::kFp8Ds, KvFormat::kQ8_0}) {
    const Held held = make_rows(format, 96, 32);
    std::vector<float> in(96, 1.0F), out(96);
    in[3] = NAN;
    in[70] = NAN;
    write_row(held.rows, 2, in.data());
    read_row(held.rows, 2, out.data());
    EXPECT_TRUE(std::isnan(out[3])) << kv_format_name(format);
    EXPECT_TRUE(std::isnan(out[70])) << kv_format_name(format);
    EXPECT_EQ(std::isnan(out[40]), format == KvFormat::kFp8Ds) << "of the first group of fp8_ds";
  }
}

}  // namespace
}  // namespace topknot::kvcache
