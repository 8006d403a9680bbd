#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "tensor/dequantize.h"

namespace topknot::tensor {
namespace {

bool is_nan_f16(uint32_t bits) { return (bits & 0x7FFF) > 0x7C00; }
bool is_nan_bf16(uint32_t bits) { return (bits & 0x7FFF) > 0x7F80; }

// The definition of the format in double arithmetic, independent of the conversion's bit moves.
double f16_by_definition(uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const double fraction = bits & 1023;
  const double magnitude = exponent == 0    ? std::ldexp(fraction, -24)
                           : exponent == 31 ? std::numeric_limits<double>::infinity()
                                            : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(Half, EveryHalfHasItsValueAndComesBack) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = f16_to_f32(static_cast<uint16_t>(bits));
    if (is_nan_f16(bits)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(is_nan_f16(f32_to_f16(value))) << bits;
    } else {
      EXPECT_EQ(static_cast<double>(value), f16_by_definition(bits)) << bits;
      EXPECT_EQ(f32_to_f16(value), bits);
    }
    EXPECT_EQ(std::signbit(value), (bits & 0x8000) != 0) << bits;
  }
}

// Between each pair of neighbours: the middle goes to the even one, everything else to the nearer.
TEST(Half, RoundsToNearestEven) {
  for (uint32_t low = 0; low < 0x7BFF; ++low) {
    const float a = f16_to_f32(static_cast<uint16_t>(low));
    const float b = f16_to_f32(static_cast<uint16_t>(low + 1));
    const float middle = (a + b) / 2;  // exact: fp32 has 13 bits more
    const uint32_t even = low + (low & 1);
    EXPECT_EQ(f32_to_f16(middle), even) << low;
    EXPECT_EQ(f32_to_f16(-middle), even | 0x8000) << low;
    EXPECT_EQ(f32_to_f16(std::nextafter(middle, 0.0F)), low);
    EXPECT_EQ(f32_to_f16(std::nextafter(middle, b)), low + 1);
  }
}

TEST(Half, OverflowUnderflowInfinityAndNan) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(f32_to_f16(65504.0F), 0x7BFF);
  EXPECT_EQ(f32_to_f16(std::nextafter(65520.0F, 0.0F)), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7C00) << "the tie goes up to infinity";
  EXPECT_EQ(f32_to_f16(-1e30F), 0xFC00);
  EXPECT_EQ(f32_to_f16(kInfinity), 0x7C00);
  EXPECT_EQ(f32_to_f16(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(f32_to_f16(-0.0F), 0x8000);
  EXPECT_TRUE(is_nan_f16(f32_to_f16(std::bit_cast<float>(0x7F800001))))
      << "a payload in the lowest bit must not become infinity";
}

TEST(Bf16, EveryValueComesBackAndRoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = bf16_to_f32(static_cast<uint16_t>(bits));
    EXPECT_EQ(std::bit_cast<uint32_t>(value) >> 16, bits);
    if (is_nan_bf16(bits)) {
      EXPECT_TRUE(is_nan_bf16(f32_to_bf16(value))) << bits;
      continue;
    }
    EXPECT_EQ(f32_to_bf16(value), bits);
    if ((bits & 0x7FFF) == 0x7F80) continue;  // no neighbour above infinity
    const uint32_t exact = bits << 16;
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(exact | 0x7FFF)), bits);
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(exact | 0x8000)), bits + (bits & 1));
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(exact | 0x8001)), bits + 1);
  }
}

TEST(Bf16, NanWithALowPayloadStaysNan) {
  EXPECT_TRUE(is_nan_bf16(f32_to_bf16(std::bit_cast<float>(0x7F800001))));
  EXPECT_TRUE(is_nan_bf16(f32_to_bf16(std::bit_cast<float>(0xFFFFFFFF))));
}

double e4m3_by_definition(uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 3 & 15);
  const double fraction = bits & 7;
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

TEST(E4m3, EveryValueIsThatOfTheDefinitionAndComesBack) {
  for (uint32_t bits = 0; bits < 256; ++bits) {
    const float value = e4m3_to_f32(static_cast<uint8_t>(bits));
    EXPECT_EQ(std::signbit(value), (bits & 0x80) != 0) << bits;
    if ((bits & 0x7F) == 0x7F) {
      EXPECT_TRUE(std::isnan(value)) << bits;
    } else {
      EXPECT_EQ(static_cast<double>(value), e4m3_by_definition(bits)) << bits;
    }
    EXPECT_EQ(f32_to_e4m3(value), bits);
  }
}

TEST(E4m3, RoundsToNearestEvenAndSaturates) {
  for (uint32_t low = 0; low < 0x7E; ++low) {
    const float a = e4m3_to_f32(static_cast<uint8_t>(low));
    const float b = e4m3_to_f32(static_cast<uint8_t>(low + 1));
    const float middle = (a + b) / 2;
    const uint32_t even = low + (low & 1);
    EXPECT_EQ(f32_to_e4m3(middle), even) << low;
    EXPECT_EQ(f32_to_e4m3(-middle), even | 0x80) << low;
    EXPECT_EQ(f32_to_e4m3(std::nextafter(middle, 0.0F)), low);
    EXPECT_EQ(f32_to_e4m3(std::nextafter(middle, b)), low + 1);
  }
  EXPECT_EQ(f32_to_e4m3(449), 0x7E);
  EXPECT_EQ(f32_to_e4m3(1e30F), 0x7E);
  EXPECT_EQ(f32_to_e4m3(-std::numeric_limits<float>::infinity()), 0xFE);
  EXPECT_EQ(f32_to_e4m3(std::numeric_limits<float>::denorm_min()), 0);
}

}  // namespace
}  // namespace topknot::tensor
