// Every backend of the registry against cpu_reference over random problems. A new backend is tested
// with no new test. Rows that no token selects hold NaN; empty entries hold -1; the backend runs
// before the reference, so that stale memory cannot pass.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "attention/registry.h"

namespace topknot::attention {
namespace {

using namespace capability;
using kvcache::kPageTokens;

struct Shape {
  int64_t heads, rank, rope, topk, tokens, context;
};

struct Problem {
  Shape shape;
  KvFormat format;
  std::unique_ptr<kvcache::Cache> cache;
  std::vector<float> q;
  std::vector<int32_t> slots;        // [tokens, topk]
  std::vector<int32_t> block_table;  // one request
  std::vector<int32_t> requests, visible;
  float scale = 0;
  double largest_key = 0;

  Facts facts(Selection selection) const {
    return Facts()
        .set(Fact::kDevice, DeviceKind::kCpu)
        .set(Fact::kSelection, selection)
        .set(Fact::kHeads, shape.heads)
        .set(Fact::kKvLoraRank, shape.rank)
        .set(Fact::kQkRopeHeadDim, shape.rope)
        .set(Fact::kTopk, shape.topk)
        .set(Fact::kKvFormat, format)
        .set(Fact::kPageTokens, kPageTokens);
  }
  // Computes with `backend` on the host.
  void run(const Backend& backend, Selection selection, const Resources& host, float* out,
           float* lse) const {
    const auto attention = backend.create({shape.heads, shape.rank, shape.rope}, host);
    ASSERT_TRUE(attention) << attention.error().to_string();
    ASSERT_TRUE((*attention)->plan({selection, shape.tokens, shape.topk, shape.context}));
    ASSERT_TRUE((*attention)->run(args(selection, out, lse)));
  }
  MlaArgs args(Selection selection, float* out, float* lse) const {
    MlaArgs a;
    a.q = q.data();
    a.kv = cache->latent_rows(0);
    a.selection = selection;
    a.sparse = {slots.data(), shape.topk};
    a.dense = {block_table.data(), static_cast<int64_t>(block_table.size()), requests.data(),
               visible.data()};
    a.tokens = shape.tokens;
    a.sm_scale = scale;
    a.out = out;
    a.lse = lse;
    return a;
  }
};

Problem make_problem(const Shape& shape, KvFormat format, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Problem p;
  p.shape = shape;
  p.format = format;
  const int64_t width = shape.rank + shape.rope;
  p.scale = 1.0f / std::sqrt(static_cast<float>(width) / 2);
  auto cache = kvcache::Cache::create({format, width, 0, {false}}, shape.context + 3 * kPageTokens);
  EXPECT_TRUE(cache);
  p.cache = std::make_unique<kvcache::Cache>(std::move(*cache));
  const auto rows = p.cache->latent_rows(0);
  std::vector<float> row(static_cast<size_t>(width), NAN);
  for (int64_t slot = 0; slot < rows.slots; ++slot) kvcache::write_row(rows, slot, row.data());
  const int64_t pages = rows.slots / kPageTokens;
  for (int32_t i = 0; i < pages; ++i) p.block_table.push_back(i);
  std::shuffle(p.block_table.begin(), p.block_table.end(), random);
  const auto slot_of = [&](int64_t position) {
    return p.block_table[static_cast<size_t>(position / kPageTokens)] * kPageTokens +
           static_cast<int32_t>(position % kPageTokens);
  };
  for (int64_t j = 0; j < shape.context; ++j) {
    double square = 0;
    for (float& value : row) {
      value = normal(random);
      square += static_cast<double>(value) * static_cast<double>(value);
    }
    p.largest_key = std::max(p.largest_key, std::sqrt(square));
    kvcache::write_row(rows, slot_of(j), row.data());
  }
  for (int64_t i = 0; i < shape.tokens * shape.heads * width; ++i) p.q.push_back(normal(random));
  std::vector<int32_t> positions(static_cast<size_t>(shape.context));
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int32_t>(i);
  for (int64_t t = 0; t < shape.tokens; ++t) {
    p.requests.push_back(0);
    p.visible.push_back(static_cast<int32_t>(t == 0 ? 0 : random() % (shape.context + 1)));
    std::shuffle(positions.begin(), positions.end(), random);
    // Token 0 selects nothing, token 1 everything it may, others have holes anywhere.
    for (int64_t k = 0; k < shape.topk; ++k) {
      const bool none = t == 0 || k >= shape.context || (t > 1 && random() % 3 == 0);
      p.slots.push_back(none ? -1 : slot_of(positions[static_cast<size_t>(k)]));
    }
  }
  return p;
}

// fp32 error of a backend against the double reference. A score is a sum of D products: at most
// (D/16 + 4) roundings of |q||k| * scale, and exp turns an absolute score error e into a relative
// error e of a weight; weights and rows are summed over K rows in fp32. Rows are of order 1, out is
// a mean of them.
double tolerance(const Problem& p) {
  const double width = static_cast<double>(p.shape.rank + p.shape.rope);
  const double q_norm = std::sqrt(width) * 1.5;
  const double score_error = (width / 16 + 4) * 0x1p-24 * q_norm * p.largest_key *
                             static_cast<double>(p.scale) / std::sqrt(width) * 4;
  const double sum_error = (static_cast<double>(p.shape.topk) / 8 + 8) * 0x1p-24;
  return 4 * (2 * score_error + sum_error);
}

void expect_near(const Problem& p, const std::vector<float>& got, const std::vector<float>& want,
                 double limit, const std::string& what) {
  size_t worst = 0;
  double largest = -1;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isinf(want[i])) {
      ASSERT_EQ(got[i], want[i]) << what << " at " << i;
      continue;
    }
    const double difference = std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i]));
    ASSERT_FALSE(std::isnan(got[i])) << what << " read a row that was not selected, at " << i;
    if (difference > largest) {
      largest = difference;
      worst = i;
    }
  }
  EXPECT_LE(largest, limit) << what << ": worst at " << worst << ": " << got[worst] << " vs "
                            << want[worst] << "; heads " << p.shape.heads << " topk "
                            << p.shape.topk;
}

constexpr Shape kShapes[] = {
    {1, 16, 0, 1, 3, 1},         {4, 512, 64, 256, 5, 700}, {3, 64, 16, 2, 6, 96},
    {64, 512, 64, 65, 4, 130},   {17, 48, 32, 33, 7, 64},   {128, 512, 0, 31, 3, 500},
    {8, 512, 64, 2048, 3, 2049}, {2, 40, 8, 1000, 4, 90},
};

TEST(AttentionConformance, EveryBackendAgreesWithTheReference) {
  uint32_t seed = 100;
  for (const RegistryEntry& entry : registry()) {
    if (entry.backend == nullptr) continue;
    for (const ops::Kernels* kernels : ops::available_kernels()) {
      for (const Shape& shape : kShapes) {
        for (const KvFormat format : {KvFormat::kF32, KvFormat::kBf16}) {
          const Problem p = make_problem(shape, format, ++seed);
          for (const Selection selection : {Selection::kSparse, Selection::kDense}) {
            if (!refusals(entry.backend->rules, p.facts(selection)).empty()) continue;
            SCOPED_TRACE(std::string(entry.name) + " " + kernels->name + " seed " +
                         std::to_string(seed));
            ThreadPool pool(2);
            const Resources host{&pool, kernels};
            std::vector<float> got(static_cast<size_t>(shape.tokens * shape.heads * shape.rank),
                                   NAN);
            std::vector<float> got_lse(static_cast<size_t>(shape.tokens * shape.heads), NAN);
            std::vector<float> want = got;
            std::vector<float> want_lse = got_lse;
            p.run(*entry.backend, selection, host, got.data(), got_lse.data());
            p.run(chosen_backend(select_backend(p.facts(selection), "cpu_reference")), selection,
                  host, want.data(), want_lse.data());
            expect_near(p, got, want, tolerance(p), "out");
            expect_near(p, got_lse, want_lse, tolerance(p) * 4, "lse");
            for (int64_t i = 0; i < shape.heads; ++i) {
              EXPECT_EQ(got_lse[static_cast<size_t>(i)], -INFINITY) << "nothing was selected";
            }
          }
        }
      }
    }
  }
}

// T-2.3: with top-k >= length sparse equals dense; holes and their places change nothing.
TEST(AttentionConformance, SparseOverEveryPositionIsDenseBitForBit) {
  Problem p = make_problem({4, 512, 64, 330, 4, 330}, KvFormat::kBf16, 7);
  for (int64_t t = 0; t < p.shape.tokens; ++t) {
    p.visible[static_cast<size_t>(t)] = static_cast<int32_t>(100 + t * 73);
    int64_t k = 0;
    for (int64_t j = 0; j < p.shape.topk; ++j)
      p.slots[static_cast<size_t>(t * p.shape.topk + j)] = -1;
    for (int32_t j = 0; j < p.visible[static_cast<size_t>(t)]; ++j) {
      if (j % 90 == 0) ++k;  // a hole
      p.slots[static_cast<size_t>(t * p.shape.topk + k++)] =
          p.block_table[static_cast<size_t>(j / kPageTokens)] * kPageTokens + j % kPageTokens;
    }
  }
  ThreadPool pool(2);
  for (const RegistryEntry& entry : registry()) {
    if (entry.backend == nullptr) continue;
    const auto run = [&](Selection selection) {
      std::vector<float> out(static_cast<size_t>(4 * 4 * 512), NAN);
      p.run(*entry.backend, selection, {&pool, ops::available_kernels().front()}, out.data(),
            nullptr);
      return out;
    };
    EXPECT_EQ(run(Selection::kSparse), run(Selection::kDense)) << entry.name;
  }
}

}  // namespace
}  // namespace topknot::attention
