#include "synth/blocks.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/assert.h"
#include "tensor/codebooks.h"
#include "tensor/dequantize.h"

namespace topknot::synth {
namespace {

using tensor::DType;

// A random word by its number (SplitMix64: Steele, Lea, Flood 2014): any place of a tensor can be
// made without what comes before it.
class Words {
 public:
  Words(uint64_t key, uint64_t first) : state_(key + first * kStep) {}
  uint64_t next() { return mix(state_ += kStep); }
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

 private:
  static constexpr uint64_t kStep = 0x9E3779B97F4A7C15;
  uint64_t state_;
};

// Close to a normal distribution of deviation 1: the sum of four 16-bit numbers. Bounded at 3.5,
// which random weights of a model are as well off with.
float normal(uint64_t word) {
  constexpr float kScale = 1.0F / 37837.2F;  // 2^16 / sqrt(3)
  const auto sum = static_cast<int32_t>((word & 0xFFFF) + (word >> 16 & 0xFFFF) +
                                        (word >> 32 & 0xFFFF) + (word >> 48));
  return static_cast<float>(sum - 131'070) * kScale;
}

void put_half(uint8_t* at, double value) {
  const uint16_t bits = tensor::f32_to_f16(static_cast<float>(value));
  std::memcpy(at, &bits, sizeof(bits));
}

double sign(uint64_t dice) { return (dice >> 63) != 0 ? -1 : 1; }

double mean_square(std::span<const int8_t> values) {
  double sum = 0;
  for (const int8_t each : values) sum += each * each;
  return sum / static_cast<double>(values.size());
}

constexpr double kE2m1MeanSquare = 8.5625;  // of 0 .5 1 1.5 2 3 4 6
// Mean squares of the codebooks' entries (gguf.md 5.3).
constexpr double kIq2XxsMeanSquare = 534.430;
constexpr double kIq2XsMeanSquare = 586.476;
constexpr double kIq2SMeanSquare = 596.842;
constexpr double kIq3XxsMeanSquare = 951.641;
constexpr double kIq3SMeanSquare = 57.6719;
constexpr double kIq1MeanSquare = 0.594177 + 1.0 / 64;  // with the shift of 1/8
// Of q in [0, n), and of q less half of n, where all q are as likely.
constexpr double variance(int n) { return (n * n - 1) / 12.0; }
constexpr double centred_square(int n) { return variance(n) + 0.25; }
// Mean squares of scales that are drawn.
constexpr double kScale8To15 = 137.5;
constexpr double kScale32To63 = 2341.5;
constexpr double kHalfPlus0To15 = 85.25;  // of 0.5 + s
constexpr double kOddTo15 = 85;           // of 1 + 2s, s below 8

// How a block type gets its scales. `rms` is what values decode to when `unit` is 1. finish() sets
// the scales of a block of random bits; `dice` is one more random word.
struct Recipe {
  DType type;
  double rms;
  void (*finish)(uint8_t* block, double unit, uint64_t dice);
};

// d at the begin, its sign drawn: q - half of n has a mean that is not 0.
void signed_scale(uint8_t* block, double unit, uint64_t dice) {
  put_half(block, unit * sign(dice));
}
void plain_scale(uint8_t* block, double unit, uint64_t /*dice*/) { put_half(block, unit); }

template <int kLevels>
void scale_and_min(uint8_t* block, double unit, uint64_t /*dice*/) {
  put_half(block, unit);
  put_half(block + 2, -unit * (kLevels - 1) / 2.0);
}

// Scale and min of each group are the same number of 8 to 15, so that dmin centres every group.
void finish_q2_k(uint8_t* block, double unit, uint64_t dice) {
  for (int i = 0; i < 16; ++i) {
    const auto scale = static_cast<uint8_t>(8 | (dice >> 3 * i & 7));
    block[i] = static_cast<uint8_t>(scale | scale << 4);
  }
  put_half(block + 80, unit);
  put_half(block + 82, 1.5 * unit);
}

void finish_q3_k(uint8_t* block, double unit, uint64_t dice) {
  put_half(block + 108, unit * sign(dice));
}

// The twelve packed bytes of Q4_K and Q5_K, with scale = min = 32 to 63 in each of 8 groups.
void put_k_scales(uint8_t* packed, uint64_t dice) {
  std::array<uint8_t, 8> s{};
  for (size_t j = 0; j < 8; ++j) s[j] = static_cast<uint8_t>(32 | (dice >> 5 * j & 31));
  for (size_t j = 0; j < 4; ++j) {
    packed[j] = static_cast<uint8_t>(s[j] | (s[j + 4] >> 4) << 6);
    packed[j + 4] = packed[j];
    packed[j + 8] = static_cast<uint8_t>((s[j + 4] & 15) | (s[j + 4] & 15) << 4);
  }
}

template <int kLevels>
void finish_k(uint8_t* block, double unit, uint64_t dice) {
  put_half(block, unit);
  put_half(block + 2, unit * (kLevels - 1) / 2.0);
  put_k_scales(block + 4, dice);
}

// Scales of 8 to 15 and of either sign.
void finish_q6_k(uint8_t* block, double unit, uint64_t dice) {
  for (int i = 0; i < 16; ++i) {
    const auto four = static_cast<int>(dice >> 4 * i & 15);
    const int scale = (four & 8) != 0 ? -(8 | (four & 7)) : 8 | four;
    block[192 + i] = static_cast<uint8_t>(scale);
  }
  put_half(block + 208, unit);
}

// d in the high four bits of the last four odd bytes.
void finish_iq1_m(uint8_t* block, double unit, uint64_t dice) {
  uint8_t half[2];
  put_half(half, unit * sign(dice));
  const uint8_t nibbles[4] = {
      static_cast<uint8_t>(half[0] & 15), static_cast<uint8_t>(half[0] >> 4),
      static_cast<uint8_t>(half[1] & 15), static_cast<uint8_t>(half[1] >> 4)};
  for (int i = 0; i < 4; ++i) {
    uint8_t& at = block[49 + 2 * i];
    at = static_cast<uint8_t>((at & 15) | nibbles[i] << 4);
  }
}

// One of two neighbouring scales, so often that the mean square of what is drawn is that of
// `unit`. `fraction` is uniform in [0, 1).
bool take_upper(double unit, double lower, double upper, double fraction) {
  const double wanted = (unit * unit - lower * lower) / (upper * upper - lower * lower);
  return fraction < wanted;
}

double fraction_of(uint64_t bits, int count) {
  const uint64_t mask = (uint64_t{1} << count) - 1;
  return static_cast<double>(bits & mask) / static_cast<double>(mask + 1);
}

void finish_mxfp4(uint8_t* block, double unit, uint64_t dice) {
  const int exponent = std::clamp(std::ilogb(unit) + 127, 1, 253);
  const double lower = std::ldexp(1.0, exponent - 127);
  const bool upper = take_upper(unit, lower, 2 * lower, fraction_of(dice, 32));
  block[0] = static_cast<uint8_t>(exponent + (upper ? 1 : 0));
}

double ue4m3(int code) {
  const int exponent = code >> 3;
  const int mantissa = code & 7;
  if (exponent == 0) return std::ldexp(mantissa, -9);
  return std::ldexp(1 + mantissa / 8.0, exponent - 7);
}

void finish_nvfp4(uint8_t* block, double unit, uint64_t dice) {
  constexpr int kLargest = 0x7E;  // 448; 0x7F is no number
  int code = 0;
  while (code + 2 <= kLargest && ue4m3(code + 1) <= unit) ++code;
  for (int group = 0; group < 4; ++group) {
    const double fraction = fraction_of(dice >> 16 * group, 16);
    const bool upper = take_upper(unit, ue4m3(code), ue4m3(code + 1), fraction);
    block[group] = static_cast<uint8_t>(code + (upper ? 1 : 0));
  }
}

const std::array<Recipe, 20>& recipes() {
  static const double kIq4Square = mean_square(tensor::kIq4Values);
  static const std::array<Recipe, 20> kRecipes = {{
      {DType::kQ4_0, std::sqrt(centred_square(16)), signed_scale},
      {DType::kQ4_1, std::sqrt(variance(16)), scale_and_min<16>},
      {DType::kQ5_0, std::sqrt(centred_square(32)), signed_scale},
      {DType::kQ5_1, std::sqrt(variance(32)), scale_and_min<32>},
      {DType::kQ2_K, std::sqrt(kScale8To15 * variance(4)), finish_q2_k},
      {DType::kQ3_K, std::sqrt(centred_square(64) * centred_square(8)), finish_q3_k},
      {DType::kQ4_K, std::sqrt(kScale32To63 * variance(16)), finish_k<16>},
      {DType::kQ5_K, std::sqrt(kScale32To63 * variance(32)), finish_k<32>},
      {DType::kQ6_K, std::sqrt(kScale8To15 * centred_square(64)), finish_q6_k},
      {DType::kIQ4_NL, std::sqrt(kIq4Square), signed_scale},
      {DType::kIQ4_XS, std::sqrt(centred_square(64) * kIq4Square), signed_scale},
      {DType::kIQ2_XXS, 0.25 * std::sqrt(kHalfPlus0To15 * kIq2XxsMeanSquare), plain_scale},
      {DType::kIQ2_XS, 0.25 * std::sqrt(kHalfPlus0To15 * kIq2XsMeanSquare), plain_scale},
      {DType::kIQ2_S, 0.25 * std::sqrt(kHalfPlus0To15 * kIq2SMeanSquare), plain_scale},
      {DType::kIQ3_XXS, 0.5 * std::sqrt(kHalfPlus0To15 * kIq3XxsMeanSquare), plain_scale},
      {DType::kIQ3_S, 2 * std::sqrt(kHalfPlus0To15 * kIq3SMeanSquare), plain_scale},
      {DType::kIQ1_S, std::sqrt(kOddTo15 * kIq1MeanSquare), signed_scale},
      {DType::kIQ1_M, std::sqrt(kOddTo15 * kIq1MeanSquare), finish_iq1_m},
      {DType::kMXFP4, std::sqrt(kE2m1MeanSquare), finish_mxfp4},
      {DType::kNVFP4, std::sqrt(kE2m1MeanSquare), finish_nvfp4},
  }};
  return kRecipes;
}

const Recipe* find_recipe(DType type) {
  for (const Recipe& recipe : recipes()) {
    if (recipe.type == type) return &recipe;
  }
  return nullptr;
}

void fill_random(const Recipe& recipe, double std, uint64_t key, uint64_t first_block,
                 std::span<std::byte> out) {
  const size_t block_bytes = tensor::dtype_info(recipe.type).block_bytes;
  const size_t words = (block_bytes + 7) / 8 + 1;
  const double unit = std / recipe.rms;
  auto* block = reinterpret_cast<uint8_t*>(out.data());
  for (size_t i = 0; i < out.size() / block_bytes; ++i, block += block_bytes) {
    Words random(key, (first_block + i) * words);
    for (size_t at = 0; at < block_bytes; at += 8) {
      const uint64_t word = random.next();
      std::memcpy(block + at, &word, std::min<size_t>(8, block_bytes - at));
    }
    recipe.finish(block, unit, random.next());
  }
}

// Quantised from values: the largest of a block gets 127.
void fill_q8_0(const Distribution& values, uint64_t key, uint64_t first_block,
               std::span<std::byte> out) {
  constexpr size_t kElements = 32;
  constexpr size_t kBytes = 34;
  auto* block = reinterpret_cast<uint8_t*>(out.data());
  for (size_t i = 0; i < out.size() / kBytes; ++i, block += kBytes) {
    Words random(key, (first_block + i) * kElements);
    float x[kElements];
    float largest = 0;
    for (float& each : x) {
      each = values.mean + values.std * normal(random.next());
      largest = std::max(largest, std::abs(each));
    }
    const float scale = largest / 127;
    const float inverse = largest > 0 ? 127 / largest : 0;
    put_half(block, scale);
    for (size_t j = 0; j < kElements; ++j) {
      block[2 + j] = static_cast<uint8_t>(static_cast<int8_t>(std::lrint(x[j] * inverse)));
    }
  }
}

template <class T, T (*Convert)(float)>
void fill_floats(const Distribution& values, uint64_t key, uint64_t first,
                 std::span<std::byte> out) {
  Words random(key, first);
  for (size_t i = 0; i < out.size() / sizeof(T); ++i) {
    const T value = Convert(values.mean + values.std * normal(random.next()));
    std::memcpy(out.data() + i * sizeof(T), &value, sizeof(T));
  }
}

float same(float value) { return value; }

}  // namespace

bool can_generate(DType type) {
  switch (type) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kQ8_0: return true;
    default: return find_recipe(type) != nullptr;
  }
}

uint64_t tensor_key(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  return Words::mix(hash + Words::mix(seed));
}

void fill_blocks(DType type, const Distribution& values, uint64_t key, uint64_t first_block,
                 std::span<std::byte> out) {
  TOPKNOT_ASSERT(out.size() % tensor::dtype_info(type).block_bytes == 0);
  switch (type) {
    case DType::kF32: return fill_floats<float, same>(values, key, first_block, out);
    case DType::kF16:
      return fill_floats<uint16_t, tensor::f32_to_f16>(values, key, first_block, out);
    case DType::kBF16:
      return fill_floats<uint16_t, tensor::f32_to_bf16>(values, key, first_block, out);
    case DType::kQ8_0: return fill_q8_0(values, key, first_block, out);
    default: break;
  }
  const Recipe* recipe = find_recipe(type);
  TOPKNOT_ASSERT(recipe != nullptr);
  fill_random(*recipe, values.std, key, first_block, out);
}

}  // namespace topknot::synth
