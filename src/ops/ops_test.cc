// Every implementation against the reference over random problems, and against itself: an output
// may not depend on how tokens are grouped or on the number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "ops/cpu/cpu_ops.h"
#include "ops/reference/reference_ops.h"
#include "tensor/dequantize.h"

namespace topknot::ops {
namespace {

using tensor::DType;

// Every type that products take, from the table.
const std::vector<DType>& types() {
  static const auto& list = *new std::vector<DType>([] {
    std::vector<DType> out;
    for (const tensor::DTypeInfo& info : tensor::dtypes()) {
      if (info.decoded) out.push_back(info.type);
    }
    return out;
  }());
  return list;
}

// Where a block keeps its factors as fp16; -1: it has none.
struct ScalePlaces {
  int scale = 0;
  int min = -1;
};
ScalePlaces scale_places(DType type) {
  switch (type) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K: return {0, 2};
    case DType::kQ2_K: return {80, 82};
    case DType::kQ3_K: return {108};
    case DType::kQ6_K: return {208};
    case DType::kIQ1_M:
    case DType::kMXFP4:
    case DType::kNVFP4: return {-1};
    default: return {};
  }
}

void set_half(std::byte* at, uint16_t bits) { std::memcpy(at, &bits, sizeof(bits)); }

// One factor of a block: fp16 bits, or the nearest that a type with another kind of scale has.
void set_scales(DType type, uint16_t scale, uint16_t min, std::byte* block) {
  const ScalePlaces places = scale_places(type);
  if (places.scale >= 0) set_half(block + places.scale, scale);
  if (places.min >= 0) set_half(block + places.min, min);
  if (type == DType::kIQ1_M) {
    for (int i = 0; i < 4; ++i) {
      std::byte& odd = block[49 + 2 * i];
      odd = (odd & std::byte{15}) | static_cast<std::byte>((scale >> 4 * i & 15) << 4);
    }
  }
  // The exponent of fp16 is that of the others but for its bias.
  if (type == DType::kMXFP4) block[0] = static_cast<std::byte>(112 + (scale >> 10 & 31));
  if (type == DType::kNVFP4) {
    const int exponent = std::clamp((scale >> 10 & 31) - 8, 0, 15);
    for (int g = 0; g < 4; ++g) block[g] = static_cast<std::byte>(exponent << 3 | g);
  }
}

// Random blocks whose scales are small and finite.
std::vector<std::byte> random_blocks(DType type, int64_t elements, std::mt19937& random) {
  const auto& info = tensor::dtype_info(type);
  std::vector<std::byte> out(tensor::row_bytes(type, static_cast<uint64_t>(elements)));
  for (std::byte& b : out) b = static_cast<std::byte>(random());
  std::normal_distribution<float> normal(0, 0.5f);
  if (type == DType::kF32) {
    for (size_t i = 0; i < out.size(); i += 4) {
      const float value = normal(random);
      std::memcpy(&out[i], &value, 4);
    }
  } else if (type == DType::kF16 || type == DType::kBF16) {
    for (size_t i = 0; i < out.size(); i += 2) {
      const float value = normal(random);
      set_half(&out[i],
               type == DType::kF16 ? tensor::f32_to_f16(value) : tensor::f32_to_bf16(value));
    }
  } else {
    for (size_t block = 0; block < out.size(); block += info.block_bytes) {
      const uint16_t scale = tensor::f32_to_f16(normal(random) / 64);
      set_scales(type, scale, tensor::f32_to_f16(normal(random) / 64), &out[block]);
    }
  }
  return out;
}

struct TestWeight {
  std::vector<std::byte> bytes;
  Weight weight;
};

TestWeight random_weight(DType type, int64_t in, int64_t out, int64_t count, std::mt19937& random) {
  TestWeight made{random_blocks(type, in * out * count, random), {}};
  const auto row = static_cast<int64_t>(tensor::row_bytes(type, static_cast<uint64_t>(in)));
  made.weight = {type, made.bytes.data(), in, out, count, row, row * out};
  return made;
}

std::vector<float> random_floats(int64_t n, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> out(static_cast<size_t>(n));
  for (float& value : out) value = normal(random);
  return out;
}

// Bound on the difference of a dot product of n terms summed in fp32 (16 lanes: n/16 + 4 roundings
// of at most the sum of magnitudes) and one summed in double: |error| <= (n/16 + 6) * eps * sum|w
// x|.
void expect_dots_near(const std::vector<float>& got, const std::vector<float>& want,
                      const std::vector<double>& magnitudes, int64_t n, const std::string& what) {
  for (size_t i = 0; i < got.size(); ++i) {
    const double limit = (static_cast<double>(n) / 16 + 6) * 0x1p-24 * magnitudes[i] + 1e-30;
    ASSERT_LE(std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i])), limit)
        << what << " at " << i << ": " << got[i] << " vs " << want[i];
  }
}

std::vector<double> dot_magnitudes(const Weight& w, int64_t matrix, const float* x,
                                   int64_t tokens) {
  std::vector<double> out;
  std::vector<float> row(static_cast<size_t>(w.in));
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t r = 0; r < w.out; ++r) {
      tensor::dequantize_row(w.type, w.row(matrix, r), static_cast<uint64_t>(w.in), row.data());
      double sum = 0;
      for (int64_t i = 0; i < w.in; ++i) {
        sum += std::abs(static_cast<double>(row[static_cast<size_t>(i)]) *
                        static_cast<double>(x[t * w.in + i]));
      }
      out.push_back(sum);
    }
  }
  return out;
}

constexpr Ops::Limits kLimits = {
    .row_elements = 1024, .tokens = 64, .experts = 16, .experts_used = 4, .expert_width = 512};

class EveryKernel : public testing::TestWithParam<const Kernels*> {
 protected:
  EveryKernel()
      : pool_(2), ops_(make_cpu_ops(*GetParam(), &pool_)), reference_(make_reference_ops()) {
    ops_->reserve(kLimits);
    reference_->reserve(kLimits);
  }
  ThreadPool pool_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Ops> reference_;
  std::mt19937 random_{11};
};

void expect_same_bits(const std::vector<float>& got, const std::vector<float>& want) {
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(want[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
        << "at " << i << ": " << got[i] << " vs " << want[i];
  }
}

TEST_P(EveryKernel, DecodesEveryTypeLikeTheScalarDecoders) {
  for (const DType type : types()) {
    // Random bytes everywhere, so also scales that are infinite, NaN or subnormal.
    std::vector<std::byte> bytes(tensor::row_bytes(type, 256 * 64));
    for (std::byte& b : bytes) b = static_cast<std::byte>(random_());
    std::vector<float> got(256 * 64);
    std::vector<float> want(256 * 64);
    GetParam()->decode_row(type, bytes.data(), 256 * 64, got.data());
    tensor::dequantize_row(type, bytes.data(), 256 * 64, want.data());
    SCOPED_TRACE(tensor::dtype_name(type));
    expect_same_bits(got, want);
  }
}

// Weights decoded to fp32 beforehand: the product on blocks has to be the same to the last bit.
TestWeight decoded_weight(const Weight& w) {
  const auto row = static_cast<uint64_t>(w.in);
  TestWeight made{std::vector<std::byte>(row * 4 * static_cast<size_t>(w.out * w.count)), {}};
  auto* out = reinterpret_cast<float*>(made.bytes.data());
  for (int64_t m = 0; m < w.count; ++m) {
    for (int64_t r = 0; r < w.out; ++r, out += row) {
      tensor::dequantize_row(w.type, w.row(m, r), row, out);
    }
  }
  made.weight = {DType::kF32, made.bytes.data(), w.in, w.out, w.count, w.in * 4, w.in * 4 * w.out};
  return made;
}

TEST_P(EveryKernel, ProductsOnBlocksEqualProductsOnDecodedRows) {
  constexpr int64_t kIn = 768, kOut = 41, kTokens = 6;
  const auto x = random_floats(kIn * kTokens, random_);
  for (const DType type : types()) {
    SCOPED_TRACE(tensor::dtype_name(type));
    const TestWeight w = random_weight(type, kIn, kOut, 1, random_);
    const TestWeight plain = decoded_weight(w.weight);
    std::vector<float> got(kOut * kTokens, NAN);
    std::vector<float> want(got.size());
    ops_->linear(w.weight, x.data(), kTokens, got.data());
    ops_->linear(plain.weight, x.data(), kTokens, want.data());
    expect_same_bits(got, want);
    const std::vector<int32_t> ids = {3, 40, 0};
    std::vector<float> rows(3 * kIn);
    std::vector<float> plain_rows(3 * kIn);
    ops_->embed(w.weight, ids, rows.data());
    ops_->embed(plain.weight, ids, plain_rows.data());
    expect_same_bits(rows, plain_rows);
  }
}

TEST_P(EveryKernel, ExtremeBlocksEqualDecodedRowsToo) {
  // 0, -0, subnormal, 1, largest, infinite, NaN.
  constexpr uint16_t kScales[] = {0x0000, 0x8000, 0x0001, 0x3C00, 0xFBFF, 0x7C00, 0x7E01};
  constexpr int64_t kIn = 256;
  const auto x = random_floats(kIn, random_);
  for (const DType type : types()) {
    const tensor::DTypeInfo& info = tensor::dtype_info(type);
    if (info.block_elements == 1) continue;
    for (const int quants : {0x00, 0x88, 0xFF}) {  // the least, the middle, the largest
      TestWeight w = random_weight(type, kIn, std::size(kScales), 1, random_);
      std::fill(w.bytes.begin(), w.bytes.end(), static_cast<std::byte>(quants));
      for (size_t row = 0; row < std::size(kScales); ++row) {
        const auto row_bytes = static_cast<size_t>(w.weight.row_bytes);
        for (size_t at = 0; at < row_bytes; at += info.block_bytes) {
          set_scales(type, kScales[row], kScales[row], &w.bytes[row * row_bytes + at]);
        }
      }
      SCOPED_TRACE(std::string(info.name) + " quants " + std::to_string(quants));
      const TestWeight plain = decoded_weight(w.weight);
      std::vector<float> got(std::size(kScales), 9);
      std::vector<float> want(got.size());
      ops_->linear(w.weight, x.data(), 1, got.data());
      ops_->linear(plain.weight, x.data(), 1, want.data());
      expect_same_bits(got, want);
    }
  }
}

TEST_P(EveryKernel, LinearAgreesWithTheReference) {
  for (const DType type : types()) {
    for (const auto& [in, out, tokens] :
         {std::array<int64_t, 3>{256, 37, 5}, {512, 1, 1}, {768, 64, 19}}) {
      const TestWeight w = random_weight(type, in, out, 1, random_);
      const auto x = random_floats(in * tokens, random_);
      std::vector<float> got(static_cast<size_t>(out * tokens), NAN);
      std::vector<float> want(got.size());
      ops_->linear(w.weight, x.data(), tokens, got.data());
      reference_->linear(w.weight, x.data(), tokens, want.data());
      expect_dots_near(got, want, dot_magnitudes(w.weight, 0, x.data(), tokens), in,
                       std::string(tensor::dtype_name(type)));
    }
  }
}

TEST_P(EveryKernel, RowsThatAreNoMultipleOfTheLanesWork) {
  for (const int64_t in : {1, 15, 16, 17, 33}) {
    const TestWeight w = random_weight(DType::kF32, in, 5, 1, random_);
    const auto x = random_floats(in * 3, random_);
    std::vector<float> got(15, NAN);
    std::vector<float> want(15);
    ops_->linear(w.weight, x.data(), 3, got.data());
    reference_->linear(w.weight, x.data(), 3, want.data());
    expect_dots_near(got, want, dot_magnitudes(w.weight, 0, x.data(), 3), in, "tail");
  }
}

TEST_P(EveryKernel, AnOutputDoesNotDependOnItsNeighboursOrOnThreads) {
  ThreadPool single(1);
  const auto one_thread = make_cpu_ops(*GetParam(), &single);
  one_thread->reserve(kLimits);
  const TestWeight w = random_weight(DType::kQ8_0, 512, 70, 1, random_);
  const auto x = random_floats(512 * 13, random_);
  std::vector<float> all(70 * 13);
  std::vector<float> alone(70);
  ops_->linear(w.weight, x.data(), 13, all.data());
  for (int64_t t = 0; t < 13; ++t) {
    one_thread->linear(w.weight, x.data() + t * 512, 1, alone.data());
    ASSERT_EQ(std::memcmp(alone.data(), all.data() + t * 70, 70 * sizeof(float)), 0)
        << "token " << t;
  }
}

TEST_P(EveryKernel, HeadProductsAgreeWithTheReference) {
  constexpr int64_t kHeads = 3, kIn = 192, kOut = 50, kTokens = 7;
  for (const DType type : {DType::kF32, DType::kBF16, DType::kQ8_0, DType::kQ5_0}) {
    const TestWeight w = random_weight(type, kIn, kOut, kHeads, random_);
    const auto x = random_floats(kTokens * kHeads * 256, random_);  // vectors inside wider ones
    std::vector<float> got(kTokens * kHeads * kOut, NAN);
    std::vector<float> want(got.size());
    ops_->linear_heads(w.weight, {x.data(), kHeads * 256, 256, got.data(), kHeads * kOut, kOut},
                       kTokens);
    reference_->linear_heads(
        w.weight, {x.data(), kHeads * 256, 256, want.data(), kHeads * kOut, kOut}, kTokens);
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 2e-3f) << i;
  }
}

TEST_P(EveryKernel, TransposedHeadProductsAgreeWithTheReference) {
  constexpr int64_t kHeads = 2, kRank = 96, kNope = 35, kTokens = 4;
  const TestWeight w = random_weight(DType::kF32, kRank, kNope, kHeads, random_);
  const auto x = random_floats(kTokens * kHeads * kNope, random_);
  std::vector<float> got(kTokens * kHeads * kRank, NAN);
  std::vector<float> want(got.size());
  ops_->linear_heads_transposed(
      w.weight, {x.data(), kHeads * kNope, kNope, got.data(), kHeads * kRank, kRank}, kTokens);
  reference_->linear_heads_transposed(
      w.weight, {x.data(), kHeads * kNope, kNope, want.data(), kHeads * kRank, kRank}, kTokens);
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-4f) << i;
}

TEST_P(EveryKernel, ExpertsAgreeWithTheReferenceAndAreIndependentOfTheBatch) {
  constexpr int64_t kExperts = 16, kUsed = 4, kD = 256, kF = 96, kTokens = 21;
  const TestWeight gate = random_weight(DType::kQ8_0, kD, kF, kExperts, random_);
  const TestWeight up = random_weight(DType::kQ4_K, kD, kF, kExperts, random_);
  const TestWeight down = random_weight(DType::kF16, kF, kD, kExperts, random_);
  const ExpertWeights w{gate.weight, up.weight, down.weight};
  const auto x = random_floats(kTokens * kD, random_);
  std::vector<int32_t> ids;
  std::vector<float> weights;
  for (int64_t t = 0; t < kTokens; ++t) {
    std::vector<int32_t> all(kExperts - 2);  // two experts never get a token
    for (size_t e = 0; e < all.size(); ++e) all[e] = static_cast<int32_t>(e);
    std::shuffle(all.begin(), all.end(), random_);
    for (int64_t k = 0; k < kUsed; ++k) {
      ids.push_back(all[static_cast<size_t>(k)]);
      weights.push_back(0.1f + static_cast<float>(k));
    }
  }
  std::vector<float> got(kTokens * kD, NAN);
  std::vector<float> want(got.size());
  ops_->experts(w, x.data(), ids.data(), weights.data(), kUsed, kTokens, got.data());
  reference_->experts(w, x.data(), ids.data(), weights.data(), kUsed, kTokens, want.data());
  float largest = 0;
  for (const float value : want) largest = std::max(largest, std::abs(value));
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-5f * largest) << i;
  std::vector<float> alone(kD);
  for (int64_t t = 0; t < kTokens; ++t) {
    ops_->experts(w, x.data() + t * kD, ids.data() + t * kUsed, weights.data() + t * kUsed, kUsed,
                  1, alone.data());
    ASSERT_EQ(std::memcmp(alone.data(), got.data() + t * kD, kD * sizeof(float)), 0) << t;
  }
}

TEST_P(EveryKernel, ExpertsOfEveryTypeEqualExpertsOfDecodedRows) {
  constexpr int64_t kExperts = 3, kUsed = 2, kD = 256, kF = 256, kTokens = 5;
  const auto x = random_floats(kTokens * kD, random_);
  const std::vector<int32_t> ids = {0, 2, 2, 1, 1, 0, 0, 1, 2, 0};
  const auto weights = random_floats(kTokens * kUsed, random_);
  for (const DType type : types()) {
    SCOPED_TRACE(tensor::dtype_name(type));
    const TestWeight w[3] = {random_weight(type, kD, kF, kExperts, random_),
                             random_weight(type, kD, kF, kExperts, random_),
                             random_weight(type, kF, kD, kExperts, random_)};
    const TestWeight plain[3] = {decoded_weight(w[0].weight), decoded_weight(w[1].weight),
                                 decoded_weight(w[2].weight)};
    std::vector<float> got(kTokens * kD, NAN);
    std::vector<float> want(got.size());
    ops_->experts({w[0].weight, w[1].weight, w[2].weight}, x.data(), ids.data(), weights.data(),
                  kUsed, kTokens, got.data());
    ops_->experts({plain[0].weight, plain[1].weight, plain[2].weight}, x.data(), ids.data(),
                  weights.data(), kUsed, kTokens, want.data());
    expect_same_bits(got, want);
  }
}

TEST_P(EveryKernel, NormsRopeAndActivationAgreeWithTheReference) {
  constexpr int64_t kWidth = 576, kTokens = 11, kDim = 64;
  const auto weight = random_floats(kWidth, random_);
  const auto bias = random_floats(kWidth, random_);
  const auto x = random_floats(kWidth * kTokens, random_);
  std::vector<float> got(x.size());
  std::vector<float> want(x.size());
  const auto check = [&](const char* what) {
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 4e-6f) << what << i;
  };
  ops_->rms_norm(x.data(), kWidth, weight.data(), kTokens, kWidth, 1e-5f, got.data());
  reference_->rms_norm(x.data(), kWidth, weight.data(), kTokens, kWidth, 1e-5f, want.data());
  check("rms_norm ");
  ops_->layer_norm(x.data(), weight.data(), bias.data(), kTokens, kWidth, 1e-6f, got.data());
  reference_->layer_norm(x.data(), weight.data(), bias.data(), kTokens, kWidth, 1e-6f, want.data());
  check("layer_norm ");
  const auto angles = random_floats(kTokens * kDim / 2, random_);
  std::vector<float> cosines, sines;
  for (const float a : angles) {
    cosines.push_back(std::cos(a));
    sines.push_back(std::sin(a));
  }
  for (const RopeFlavour flavour : {RopeFlavour::kInterleaved, RopeFlavour::kHalfSplit}) {
    got = want = x;
    RopeArgs args{got.data(), kTokens, 4, kWidth, 128, kDim, flavour, cosines.data(), sines.data()};
    ops_->rope(args);
    args.data = want.data();
    reference_->rope(args);
    check("rope ");
  }
  got = want = x;
  ops_->silu_mul(got.data(), angles.data(), static_cast<int64_t>(angles.size()));
  reference_->silu_mul(want.data(), angles.data(), static_cast<int64_t>(angles.size()));
  check("silu ");
}

INSTANTIATE_TEST_SUITE_P(Kernels, EveryKernel, testing::ValuesIn(available_kernels()),
                         [](const auto& instance) { return std::string(instance.param->name); });

TEST(ReferenceRope, RotatesThePairsTheFlavourNames) {
  const auto ops = make_reference_ops();
  const float cosine[] = {0, 1};
  const float sine[] = {1, 0};  // first pair by 90 degrees, second not at all
  std::vector<float> v = {1, 2, 3, 4};
  ops->rope({v.data(), 1, 1, 4, 4, 4, RopeFlavour::kInterleaved, cosine, sine});
  EXPECT_EQ(v, (std::vector<float>{-2, 1, 3, 4}));
  v = {1, 2, 3, 4};
  ops->rope({v.data(), 1, 1, 4, 4, 4, RopeFlavour::kHalfSplit, cosine, sine});
  EXPECT_EQ(v, (std::vector<float>{-3, 2, 1, 4}));
}

}  // namespace
}  // namespace topknot::ops
