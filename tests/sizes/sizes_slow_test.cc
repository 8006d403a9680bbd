// T-4.4, what takes seconds: more than 2^31 scores and more than 2^31 mapped positions are really
// computed, in buffers that see little memory again and again.
#include <gtest/gtest.h>

#include <vector>

#include "attention/indexer/indexer.h"
#include "kvcache/slot_map.h"
#include "sizes/large_array.h"

namespace topknot::test {
namespace {

using kvcache::kPageTokens;

// 130 tokens over 2^24 keys. All pages of the context are one page of zeros but a few, whose keys
// score high: the selection is known.
TEST(SizesSlow, MoreThan31BitsOfScores) {
  constexpr int64_t kContext = int64_t{1} << 24;
  constexpr int64_t kTokens = 130;
  static_assert(kContext * kTokens > int64_t{1} << 31);
  constexpr int64_t kDim = 16;
  const std::vector<int64_t> hot = {0, 77'777, kContext / kPageTokens - 1};
  const auto topk = static_cast<int64_t>(hot.size()) * kPageTokens;
  auto cache = kvcache::Cache::create({kvcache::KvFormat::kF32, 16, kDim, {true}}, 2 * kPageTokens);
  ASSERT_TRUE(cache);
  const std::vector<float> ones(kDim, 1);
  for (int64_t i = 0; i < kPageTokens; ++i) {
    kvcache::write_row(cache->index_rows(0), kPageTokens + i, ones.data());
  }
  std::vector<int32_t> table(kContext / kPageTokens, 0);
  for (const int64_t page : hot) table[static_cast<size_t>(page)] = 1;
  std::vector<int32_t> want;
  for (const int64_t page : hot) {
    for (int64_t i = 0; i < kPageTokens; ++i) {
      want.push_back(static_cast<int32_t>(page * kPageTokens + i));
    }
  }
  const std::vector<float> q(kTokens * kDim, 0.5f);
  const std::vector<float> weights(kTokens, 1);
  const std::vector<int32_t> requests(kTokens, 0);
  const std::vector<int32_t> visible(kTokens, static_cast<int32_t>(kContext));
  std::vector<int32_t> got(static_cast<size_t>(kTokens * topk), -7);
  ThreadPool pool(2);
  attention::Resources resources;
  resources.pool = &pool;
  resources.kernels = ops::available_kernels().front();
  const auto indexer = attention::make_cpu_indexer(
      {.heads = 1, .head_dim = kDim, .topk = topk, .max_tokens = kTokens, .max_context = kContext},
      resources);
  EXPECT_LE(indexer->workspace_bytes(), attention::kMaxIndexerWorkspaceBytes);
  indexer->run({q.data(), weights.data(), cache->index_rows(0), table.data(),
                static_cast<int64_t>(table.size()), requests.data(), visible.data(), kTokens,
                got.data(), nullptr, 0});
  for (int64_t t = 0; t < kTokens; ++t) {
    const std::vector<int32_t> row(got.begin() + t * topk, got.begin() + (t + 1) * topk);
    ASSERT_EQ(row, want) << "token " << t;
  }
}

// In place; the first 2^31 entries are empty, and only the last piece holds positions.
TEST(SizesSlow, MoreThan31BitsOfMappedPositions) {
  constexpr int64_t kWidth = 1 << 16;
  constexpr int64_t kPiece = 8 * kWidth;
  constexpr int64_t kRepeats = (int64_t{1} << 31) / kPiece;
  const RepeatedArray entries(kPiece, kRepeats);
  if (!entries.there()) GTEST_SKIP() << "the system refuses so much address space";
  const int64_t tokens = entries.count() / kWidth;
  std::fill(entries.first().begin(), entries.first().end(), kvcache::kNoSlot);
  for (size_t i = 0; i < entries.last().size(); ++i) {
    entries.last()[i] = static_cast<int32_t>(i % (3 * kPageTokens));
  }
  const std::vector<int32_t> table = {9, 4, 6};
  const std::vector<int32_t> requests(static_cast<size_t>(tokens), 0);
  std::vector<int32_t> valid(static_cast<size_t>(tokens), -7);
  EXPECT_EQ(kvcache::map_slots({entries.span(), requests, table, tokens, kWidth, 3, kPageTokens,
                                entries.span(), valid}),
            0);
  for (size_t i = 0; i < entries.last().size(); ++i) {
    const size_t position = i % (3 * kPageTokens);
    ASSERT_EQ(entries.last()[i], table[position / kPageTokens] * kPageTokens +
                                     static_cast<int32_t>(position % kPageTokens))
        << i;
  }
  for (const int32_t each : entries.first()) ASSERT_EQ(each, kvcache::kNoSlot);
  for (int64_t t = 0; t < tokens; ++t) {
    ASSERT_EQ(valid[static_cast<size_t>(t)], t < tokens - 8 ? 0 : kWidth) << "token " << t;
  }
}

}  // namespace
}  // namespace topknot::test
