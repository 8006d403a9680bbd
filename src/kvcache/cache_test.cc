#include "kvcache/cache.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace topknot::kvcache {
namespace {

CacheShape shape() {
  return {.format = KvFormat::kBf16,
          .latent_width = 80,
          .index_width = 32,
          .layer_has_index = {true, false, true}};
}

TEST(Cache, IndexRowsExistOnlyWhereALayerHasAnIndexer) {
  auto cache = Cache::create(shape(), 100);
  ASSERT_TRUE(cache);
  EXPECT_EQ(cache->pages(), 2);
  EXPECT_FALSE(cache->index_rows(0).empty());
  EXPECT_TRUE(cache->index_rows(1).empty());
  EXPECT_EQ(shape().bytes_per_token(), (3 * 80 + 2 * 32) * 2);
}

TEST(Cache, PagesAlwaysBalance) {
  auto cache = Cache::create(shape(), 64 * 20);
  ASSERT_TRUE(cache);
  std::mt19937 random(7);
  {
    std::vector<BlockTable> tables;
    for (int i = 0; i < 4; ++i) tables.emplace_back(&*cache);
    for (int step = 0; step < 2000; ++step) {
      BlockTable& table = tables[random() % 4];
      const int64_t tokens = random() % (64 * 12);
      const auto before = table.pages().size();
      if (!table.grow(tokens)) {
        EXPECT_EQ(table.pages().size(), before) << "nothing may be taken when there is not enough";
      }
      if (random() % 2 == 0) table.truncate(tokens / 2);
      int64_t taken = 0;
      for (const BlockTable& each : tables) taken += static_cast<int64_t>(each.pages().size());
      ASSERT_EQ(taken + cache->free_pages(), cache->pages());
    }
  }
  EXPECT_EQ(cache->free_pages(), cache->pages());
}

TEST(Cache, AReusedPageHoldsNothingOfItsFormerOwner) {
  auto cache = Cache::create(shape(), 64);
  ASSERT_TRUE(cache);
  const std::vector<float> poison(80, std::numeric_limits<float>::quiet_NaN());
  {
    BlockTable first(&*cache);
    ASSERT_TRUE(first.grow(64));
    for (int64_t t = 0; t < 64; ++t) {
      write_row(cache->latent_rows(1), first.slot(t), poison.data());
      write_row(cache->index_rows(2), first.slot(t), poison.data());
    }
  }
  BlockTable second(&*cache);
  ASSERT_TRUE(second.grow(1));
  std::vector<float> row(80, 1.0f);
  for (int64_t t = 0; t < 64; ++t) {
    read_row(cache->latent_rows(1), second.slot(t), row.data());
    for (const float value : row) ASSERT_EQ(value, 0.0f);
    read_row(cache->index_rows(2), second.slot(t), row.data());
    for (int i = 0; i < 32; ++i) ASSERT_EQ(row[static_cast<size_t>(i)], 0.0f);
  }
}

TEST(Cache, RowsRoundTripInBothFormats) {
  CacheShape f32 = shape();
  f32.format = KvFormat::kF32;
  auto exact = Cache::create(f32, 64);
  auto rounded = Cache::create(shape(), 64);
  ASSERT_TRUE(exact && rounded);
  std::vector<float> in(80);
  for (size_t i = 0; i < in.size(); ++i) in[i] = std::sin(static_cast<float>(i)) * 3;
  std::vector<float> out(80);
  write_row(exact->latent_rows(0), 63, in.data());
  read_row(exact->latent_rows(0), 63, out.data());
  EXPECT_EQ(in, out);
  write_row(rounded->latent_rows(0), 5, in.data());
  read_row(rounded->latent_rows(0), 5, out.data());
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_NEAR(out[i], in[i], std::abs(in[i]) / 256) << "bf16 keeps 8 bits";
  }
}

TEST(Cache, ALengthAboveTheSlotLimitIsRefused) {
  const auto cache = Cache::create(shape(), kMaxSlots + 1);
  ASSERT_FALSE(cache);
  EXPECT_EQ(cache.error().code, Code::kOutOfRange);
}

}  // namespace
}  // namespace topknot::kvcache
