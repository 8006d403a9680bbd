#include "attention/indexer/indexer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "attention/indexer/top_k.h"

namespace topknot::attention {
namespace {

using kvcache::kPageTokens;
using kvcache::KvFormat;

// Two requests over one cache, pages in a scrambled order, NaN in every row no request owns.
struct Problem {
  IndexerShape shape;
  std::vector<float> q, weights;
  std::vector<int32_t> block_table, requests, visible;
  std::unique_ptr<kvcache::Cache> cache;
  int64_t max_pages = 0;

  IndexerArgs args(int32_t* positions, float* scores) const {
    return {q.data(),  weights.data(),  cache->index_rows(0), block_table.data(),
            max_pages, requests.data(), visible.data(),       static_cast<int64_t>(visible.size()),
            positions, scores,          shape.max_context};
  }
};

Problem make_problem(int64_t heads, int64_t dim, int64_t topk, int64_t context, KvFormat format,
                     uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Problem p;
  p.max_pages = (context + kPageTokens - 1) / kPageTokens;
  p.shape = {heads, dim, topk, 16, context};
  const kvcache::CacheShape cache_shape{format, 16, dim, {true}};
  auto cache = kvcache::Cache::create(cache_shape, 2 * p.max_pages * kPageTokens);
  EXPECT_TRUE(cache);
  p.cache = std::make_unique<kvcache::Cache>(std::move(*cache));
  for (int32_t i = 0; i < 2 * p.max_pages; ++i) p.block_table.push_back(i);
  std::shuffle(p.block_table.begin(), p.block_table.end(), random);
  const auto rows = p.cache->index_rows(0);
  std::vector<float> key(static_cast<size_t>(dim), NAN);
  for (int64_t slot = 0; slot < rows.slots; ++slot) kvcache::write_row(rows, slot, key.data());
  const std::vector<int64_t> lengths = {context, context / 2 + 1};
  for (size_t r = 0; r < 2; ++r) {
    for (int64_t j = 0; j < lengths[r]; ++j) {
      for (float& value : key) value = normal(random);
      const int64_t page = p.block_table[r * p.max_pages + j / kPageTokens];
      kvcache::write_row(rows, page * kPageTokens + j % kPageTokens, key.data());
    }
    for (int i = 0; i < 8; ++i) {
      p.requests.push_back(static_cast<int32_t>(r));
      // Some below topk, some across a page or tile border, the last one sees everything.
      p.visible.push_back(static_cast<int32_t>(std::max<int64_t>(1, lengths[r] - (7 - i) * 37)));
    }
  }
  for (int64_t i = 0; i < 16 * heads * dim; ++i) p.q.push_back(normal(random));
  for (int64_t i = 0; i < 16 * heads; ++i) p.weights.push_back(normal(random) / 50);
  return p;
}

TEST(CpuIndexer, ScoresAndSelectionAgreeWithTheReference) {
  ThreadPool pool(2);
  uint32_t seed = 0;
  for (const ops::Kernels* kernels : ops::available_kernels()) {
    for (const auto& [heads, dim, topk, context] : {std::array<int64_t, 4>{4, 128, 256, 1000},
                                                    {1, 16, 2, 300},
                                                    {33, 64, 64, 513},
                                                    {3, 32, 8, 9}}) {
      for (const KvFormat format : {KvFormat::kF32, KvFormat::kBf16}) {
        const Problem p = make_problem(heads, dim, topk, context, format, ++seed);
        const auto n = static_cast<int64_t>(p.visible.size());
        std::vector<float> got_scores(static_cast<size_t>(n * context), NAN);
        std::vector<float> want_scores = got_scores;
        std::vector<int32_t> got(static_cast<size_t>(n * topk), -9);
        std::vector<int32_t> want = got;
        const auto indexer = make_cpu_indexer(p.shape, {&pool, kernels});
        indexer->run(p.args(got.data(), got_scores.data()));
        make_reference_indexer(p.shape)->run(p.args(want.data(), want_scores.data()));
        for (int64_t t = 0; t < n; ++t) {
          const int64_t visible = p.visible[static_cast<size_t>(t)];
          if (visible <= topk) {
            for (int64_t k = 0; k < topk; ++k) ASSERT_EQ(got[t * topk + k], k < visible ? k : -1);
            continue;
          }
          // The selection is exact for the scores it was made from.
          std::vector<int32_t> exact(static_cast<size_t>(topk));
          select_top_k({&got_scores[t * context], static_cast<size_t>(visible)}, topk,
                       exact.data());
          for (int64_t k = 0; k < topk; ++k) {
            ASSERT_EQ(got[t * topk + k], exact[static_cast<size_t>(k)]);
          }
          // fp32 sums over dim and heads against double: values are of order sqrt(dim * heads)
          // / 50.
          const float limit = static_cast<float>(dim + heads) * 0x1p-24f *
                              std::sqrt(static_cast<float>(dim)) * static_cast<float>(heads) / 8;
          for (int64_t j = 0; j < visible; ++j) {
            ASSERT_NEAR(got_scores[t * context + j], want_scores[t * context + j], limit)
                << "seed " << seed << " token " << t << " key " << j;
          }
        }
      }
    }
  }
}

TEST(CpuIndexer, ARowDoesNotDependOnWhatSharesItsCallOrOnThreads) {
  const Problem p = make_problem(4, 128, 64, 700, KvFormat::kBf16, 99);
  const ops::Kernels* kernels = ops::available_kernels().front();
  ThreadPool two(2);
  ThreadPool one(1);
  std::vector<int32_t> all(16 * 64);
  std::vector<float> all_scores(16 * 700);
  make_cpu_indexer(p.shape, {&two, kernels})->run(p.args(all.data(), all_scores.data()));
  const auto single = make_cpu_indexer(p.shape, {&one, kernels});
  for (int64_t t = 0; t < 16; ++t) {
    std::vector<int32_t> alone(64);
    std::vector<float> scores(700);
    IndexerArgs args = p.args(alone.data(), scores.data());
    args.q += t * 4 * 128;
    args.weights += t * 4;
    args.requests += t;
    args.visible += t;
    args.tokens = 1;
    single->run(args);
    for (size_t k = 0; k < 64; ++k) ASSERT_EQ(alone[k], all[static_cast<size_t>(t) * 64 + k]);
    for (int64_t j = 0; j < p.visible[static_cast<size_t>(t)]; ++j) {
      ASSERT_EQ(scores[static_cast<size_t>(j)], all_scores[static_cast<size_t>(t * 700 + j)]);
    }
  }
}

// T-4.1
TEST(CpuIndexer, TheWorkspaceIsBoundedAtAMillionTokensAndAnyChunk) {
  ThreadPool pool(4);
  for (const int64_t context : {int64_t{1} << 12, int64_t{1} << 20, int64_t{1} << 24}) {
    for (const int64_t chunk : {1, 512, 8192}) {
      const auto indexer = make_cpu_indexer({32, 128, 2048, chunk, context},
                                            {&pool, ops::available_kernels().front()});
      EXPECT_LE(indexer->workspace_bytes(), kMaxIndexerWorkspaceBytes) << context << " " << chunk;
    }
  }
}

}  // namespace
}  // namespace topknot::attention
