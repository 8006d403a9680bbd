#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tensor/dequantize.h"
#include "topknot/attention.h"

namespace topknot {
namespace {

using testing::Each;
using testing::HasSubstr;

constexpr int64_t kHeads = 5, kRank = 64, kRope = 16, kTopk = 24, kSlots = 100, kTokens = 3;
constexpr int64_t kWidth = kRank + kRope;
constexpr float kScale = 0.125F;

// Random rows; those that no token selects hold NaN, so a backend that reads them fails.
struct Problem {
  std::vector<float> q, rows;
  std::vector<uint16_t> bf16_rows;
  std::vector<int32_t> topk_slots;  // the last token's are all empty
  std::vector<float> out = std::vector<float>(kTokens * kHeads * kRank, NAN);
  std::vector<float> lse = std::vector<float>(kTokens * kHeads, NAN);

  Problem() {
    std::mt19937 random(20261130);
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < kTokens * kHeads * kWidth; ++i) q.push_back(normal(random));
    rows.assign(kSlots * kWidth, NAN);
    for (int64_t t = 0; t < kTokens; ++t) {
      for (int64_t k = 0; k < kTopk; ++k) {
        const bool empty = t == kTokens - 1 || k % 7 == 3;
        topk_slots.push_back(empty ? -1 : static_cast<int32_t>((t * 11 + k * 3) % kSlots));
      }
    }
    for (const int32_t slot : topk_slots) {
      for (int64_t c = 0; slot >= 0 && c < kWidth; ++c) {
        // Values of bf16, so that both types hold the same numbers.
        const float value = tensor::bf16_to_f32(tensor::f32_to_bf16(normal(random)));
        rows[static_cast<size_t>(slot * kWidth + c)] = value;
      }
    }
    for (const float value : rows) bf16_rows.push_back(tensor::f32_to_bf16(value));
  }

  SparseMlaDecodeArgs args(ElementType type) {
    SparseMlaDecodeArgs a;
    a.q = q.data();
    a.kv_rows = type == ElementType::kF32 ? static_cast<const void*>(rows.data())
                                          : static_cast<const void*>(bf16_rows.data());
    a.slots = kSlots;
    a.topk_slots = topk_slots.data();
    a.out = out.data();
    a.lse = lse.data();
    a.tokens = kTokens;
    a.sm_scale = kScale;
    return a;
  }

  double score(int64_t t, int64_t h, int32_t slot) const {
    double sum = 0;
    for (int64_t c = 0; c < kWidth; ++c) {
      sum += double{q[static_cast<size_t>((t * kHeads + h) * kWidth + c)]} *
             double{rows[static_cast<size_t>(slot * kWidth + c)]};
    }
    return sum * double{kScale};
  }

  // Output c of a head, and its lse, by the definition.
  double expected(int64_t t, int64_t h, int64_t c, double* lse_out) const {
    double total = 0, sum = 0;
    for (int64_t k = 0; k < kTopk; ++k) {
      const int32_t slot = topk_slots[static_cast<size_t>(t * kTopk + k)];
      if (slot < 0) continue;
      const double weight = std::exp(score(t, h, slot));  // scores are below 10
      total += weight;
      sum += weight * double{rows[static_cast<size_t>(slot * kWidth + c)]};
    }
    *lse_out = std::log(total);
    return total > 0 ? sum / total : 0;
  }
};

SparseMlaShape shape(ElementType rows) {
  return {.heads = kHeads,
          .kv_lora_rank = kRank,
          .qk_rope_head_dim = kRope,
          .topk = kTopk,
          .activation_type = ElementType::kF32,
          .kv_row_type = rows};
}

SparseMlaDecode make(const SparseMlaOptions& options = {}, ElementType rows = ElementType::kBf16) {
  auto made = SparseMlaDecode::create(shape(rows), options);
  EXPECT_TRUE(made) << made.error().to_string();
  return std::move(*made);
}

// A score is a sum of D products of order 1 (|q.k| below 64 here) scaled by 1/8: its error is at
// most D * 2^-24 * 64 / 8 = 4e-5, a relative error of a weight; weights and their mean of values
// below 5 then are within 2 * 4e-5 * 5 and the sum of 24 terms adds 24 * 2^-24 * 5.
constexpr double kLimit = 5e-4;

TEST(PartsAttention, EveryCpuBackendComputesTheDefinition) {
  for (const char* backend : {"", "cpu_simd", "cpu_reference"}) {
    for (const ElementType type : {ElementType::kF32, ElementType::kBf16}) {
      Problem problem;
      SparseMlaDecode decode = make({.attention_backend = backend, .threads = 2}, type);
      const Status done = decode.run(problem.args(type));
      ASSERT_TRUE(done) << done.error().to_string();
      for (int64_t t = 0; t < kTokens; ++t) {
        for (int64_t h = 0; h < kHeads; ++h) {
          double lse = 0;
          for (int64_t c = 0; c < kRank; ++c) {
            const double want = problem.expected(t, h, c, &lse);
            const float got = problem.out[static_cast<size_t>((t * kHeads + h) * kRank + c)];
            ASSERT_NEAR(double{got}, want, kLimit) << backend << " " << t << " " << h << " " << c;
          }
          const float got = problem.lse[static_cast<size_t>(t * kHeads + h)];
          if (t == kTokens - 1) {
            ASSERT_EQ(got, -std::numeric_limits<float>::infinity()) << "nothing is selected";
          } else {
            ASSERT_NEAR(double{got}, lse, kLimit);
          }
        }
      }
    }
  }
}

TEST(PartsAttention, ThreadsAndOtherTokensChangeNoBit) {
  Problem all, one;
  SparseMlaDecode three_threads = make({.threads = 3});
  EXPECT_EQ(three_threads.attention_backend(), "cpu_simd");
  ASSERT_TRUE(three_threads.run(all.args(ElementType::kBf16)));
  SparseMlaDecode one_thread = make({.threads = 1});
  SparseMlaDecodeArgs args = one.args(ElementType::kBf16);
  args.tokens = 1;
  args.lse = nullptr;
  ASSERT_TRUE(one_thread.run(args));
  for (size_t i = 0; i < kHeads * kRank; ++i) ASSERT_EQ(one.out[i], all.out[i]) << i;
  EXPECT_THAT(std::vector<float>(one.out.begin() + kHeads * kRank, one.out.end()),
              Each(testing::IsNan()))
      << "nothing is written behind the tokens given";
}

// Every wrong argument is told, and writes nothing.
TEST(PartsAttention, WrongArgumentsAreErrors) {
  Problem problem;
  SparseMlaDecode decode = make({.threads = 1});
  const auto refused = [&](Code code, std::string_view text, auto change) {
    SparseMlaDecodeArgs args = problem.args(ElementType::kBf16);
    change(&args);
    const Status done = decode.run(args);
    ASSERT_FALSE(done) << text;
    EXPECT_EQ(done.error().code, code) << text;
    EXPECT_THAT(done.error().to_string(), HasSubstr(std::string(text)));
  };
  using Args = SparseMlaDecodeArgs;
  constexpr Code kBad = Code::kInvalidArgument, kRange = Code::kOutOfRange;
  refused(kBad, "q ", [](Args* a) { a->q = nullptr; });
  refused(kBad, "kv_rows", [](Args* a) { a->kv_rows = nullptr; });
  refused(kBad, "topk_slots", [](Args* a) { a->topk_slots = nullptr; });
  refused(kBad, "out", [](Args* a) { a->out = nullptr; });
  refused(kBad, "stream", [](Args* a) { a->stream = a; });
  refused(kBad, "multiple of 4", [](Args* a) { a->q = static_cast<const char*>(a->q) + 2; });
  refused(kBad, "multiple of 2",
          [](Args* a) { a->kv_rows = static_cast<const char*>(a->kv_rows) + 1; });
  refused(kBad, "overlaps that of q", [](Args* a) { a->out = const_cast<void*>(a->q); });
  refused(kBad, "overlaps that of out", [](Args* a) { a->lse = static_cast<float*>(a->out) + 1; });
  refused(kBad, "address space",
          [](Args* a) { a->kv_rows = reinterpret_cast<const void*>(~uintptr_t{0} - 63); });
  for (const float scale : {0.0F, -1.0F, NAN, INFINITY}) {
    refused(kBad, "sm_scale", [&](Args* a) { a->sm_scale = scale; });
  }
  for (const int64_t tokens : {int64_t{-1}, INT64_MIN, INT64_MAX}) {
    refused(kRange, "tokens", [&](Args* a) { a->tokens = tokens; });
  }
  for (const int64_t slots : {int64_t{-1}, int64_t{0}, INT64_MAX}) {
    refused(kRange, "slots", [&](Args* a) { a->slots = slots; });
  }
  for (const int32_t slot : {-2, static_cast<int32_t>(kSlots), INT32_MAX, INT32_MIN}) {
    problem.topk_slots[kTopk + 5] = slot;
    refused(kRange, "topk_slots[1, 5]", [](Args*) {});
  }
  EXPECT_THAT(problem.out, Each(testing::IsNan()));
  EXPECT_THAT(problem.lse, Each(testing::IsNan()));
  EXPECT_TRUE(decode.run({.slots = 1, .tokens = 0, .sm_scale = 1})) << "no token, nothing to do";
}

TEST(PartsAttention, WrongShapesAndBackendsAreErrors) {
  const auto code_of = [](auto change) {
    SparseMlaShape s = shape(ElementType::kBf16);
    SparseMlaOptions o;
    change(&s, &o);
    const auto made = SparseMlaDecode::create(s, o);
    EXPECT_FALSE(made);
    return made ? Code::kCancelled : made.error().code;
  };
  using Shape = SparseMlaShape;
  using Options = SparseMlaOptions;
  for (const int64_t size : {int64_t{0}, int64_t{-1}, INT64_MAX}) {
    EXPECT_EQ(code_of([&](Shape* s, Options*) { s->heads = size; }), Code::kOutOfRange);
    EXPECT_EQ(code_of([&](Shape* s, Options*) { s->kv_lora_rank = size; }), Code::kOutOfRange);
    EXPECT_EQ(code_of([&](Shape* s, Options*) { s->qk_rope_head_dim = size; }), Code::kOutOfRange);
    EXPECT_EQ(code_of([&](Shape* s, Options*) { s->topk = size; }), Code::kOutOfRange);
  }
  EXPECT_EQ(code_of([](Shape*, Options* o) { o->threads = -1; }), Code::kOutOfRange);
  EXPECT_EQ(code_of([](Shape* s, Options*) { s->activation_type = ElementType::kBf16; }),
            Code::kUnsupported);
  EXPECT_EQ(code_of([](Shape* s, Options*) { s->kv_row_type = static_cast<ElementType>(7); }),
            Code::kInvalidArgument);
  EXPECT_EQ(code_of([](Shape*, Options* o) { o->device = "cuda:0"; }), Code::kUnsupported);
  EXPECT_EQ(code_of([](Shape*, Options* o) { o->device = "gpu"; }), Code::kInvalidArgument);
  EXPECT_EQ(code_of([](Shape*, Options* o) { o->attention_backend = "cpu_smid"; }),
            Code::kNotFound);
}

}  // namespace
}  // namespace topknot
