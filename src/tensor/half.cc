// fp16, bf16 and e4m3 by their bits: no floating-point operation, so neither the rounding mode nor
// flush-to-zero of the calling thread changes a result.
#include <bit>

#include "tensor/dequantize.h"

namespace topknot::tensor {

float f16_to_f32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1F;
  const uint32_t fraction = bits & 0x3FF;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000 | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  if (fraction == 0) return std::bit_cast<float>(sign);
  // Subnormal, fraction * 2^-24: every one is a normal fp32 number. Move its top bit to bit 23.
  const auto shift = static_cast<uint32_t>(std::countl_zero(fraction)) - 8;
  const uint32_t normalised = fraction << shift & 0x7FFFFF;
  return std::bit_cast<float>(sign | (126 - shift) << 23 | normalised);
}

uint16_t f32_to_f16(float value) {
  constexpr uint32_t kInfinity = 0x7F800000;
  constexpr uint32_t kOverflow = 0x477FF000;   // 65520, half way to the first unrepresentable 65536
  constexpr uint32_t kMinNormal = 0x38800000;  // 2^-14
  constexpr uint32_t kUnderflow = 0x33000000;  // 2^-25, a tie that goes to zero
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  const auto with_sign = [sign](uint32_t half) { return static_cast<uint16_t>(sign | half); };
  // The quiet bit is set, or a payload in the low bits only would become infinity.
  if (magnitude > kInfinity) return with_sign(0x7E00 | (magnitude >> 13 & 0x3FF));
  if (magnitude >= kOverflow) return with_sign(0x7C00);
  if (magnitude >= kMinNormal) {
    const uint32_t rebased = magnitude - (112U << 23);
    return with_sign((rebased + 0xFFF + (rebased >> 13 & 1)) >> 13);  // a carry moves the exponent
  }
  if (magnitude <= kUnderflow) return with_sign(0);
  const uint32_t shift = 126 - (magnitude >> 23);
  const uint32_t significand = (magnitude & 0x7FFFFF) | 0x800000;
  const uint32_t whole = significand >> shift;
  const uint32_t rest = significand & ((1U << shift) - 1);
  const uint32_t tie = 1U << (shift - 1);
  return with_sign(whole + (rest > tie || (rest == tie && (whole & 1) != 0) ? 1 : 0));
}

uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

float e4m3_to_f32(uint8_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80) << 24;
  const uint32_t magnitude = bits & 0x7F;
  if (magnitude == 0x7F) return std::bit_cast<float>(sign | 0x7FC00000);
  if (magnitude >= 8) return std::bit_cast<float>(sign | (magnitude + (120U << 3)) << 20);
  // Subnormal: magnitude * 2^-9. Move its top bit to bit 3, the place of the hidden one.
  if (magnitude == 0) return std::bit_cast<float>(sign);
  const auto shift = static_cast<uint32_t>(std::countl_zero(magnitude)) - 28;
  return std::bit_cast<float>(sign | (121 - shift) << 23 | (magnitude << shift & 7) << 20);
}

uint8_t f32_to_e4m3(float value) {
  constexpr uint32_t kInfinity = 0x7F800000;
  constexpr uint32_t kOverflow = 0x43E80000;   // 464, half way from 448 to what would be 480
  constexpr uint32_t kMinNormal = 0x3C800000;  // 2^-6
  constexpr uint32_t kUnderflow = 0x3A800000;  // 2^-10, a tie that goes to zero
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 24 & 0x80;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  const auto with_sign = [sign](uint32_t low) { return static_cast<uint8_t>(sign | low); };
  if (magnitude > kInfinity) return with_sign(0x7F);
  if (magnitude >= kOverflow) return with_sign(0x7E);
  if (magnitude >= kMinNormal) {
    const uint32_t rebased = magnitude - (120U << 23);
    return with_sign((rebased + 0x7FFFF + (rebased >> 20 & 1)) >> 20);
  }
  if (magnitude <= kUnderflow) return with_sign(0);
  const uint32_t shift = 141 - (magnitude >> 23);
  const uint32_t significand = (magnitude & 0x7FFFFF) | 0x800000;
  const uint32_t whole = significand >> shift;
  const uint32_t rest = significand & ((1U << shift) - 1);
  const uint32_t tie = 1U << (shift - 1);
  return with_sign(whole + (rest > tie || (rest == tie && (whole & 1) != 0) ? 1 : 0));
}

}  // namespace topknot::tensor
