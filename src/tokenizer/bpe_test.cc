#include "tokenizer/bpe.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace topknot::tokenizer {
namespace {

// Token b is byte b; merged tokens count on from 256.
std::array<int32_t, 256> identity_bytes() {
  std::array<int32_t, 256> ids{};
  for (int32_t b = 0; b < 256; ++b) ids[static_cast<size_t>(b)] = b;
  return ids;
}

std::vector<int32_t> tokens_of(const MergeTable& table, std::string_view piece) {
  const auto bytes = identity_bytes();
  std::vector<int32_t> ids;
  BpeMerger(table, bytes).append_tokens(piece, &ids);
  return ids;
}
using Ids = std::vector<int32_t>;

// The definition, word for word: quadratic.
Ids naive_tokens(const MergeTable& table, std::string_view piece) {
  Ids ids;
  for (const char c : piece) ids.push_back(static_cast<uint8_t>(c));
  while (true) {
    size_t best = ids.size();
    uint32_t best_rank = UINT32_MAX;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto rank = table.find(ids[i], ids[i + 1]);
      if (rank && *rank < best_rank) {
        best = i;
        best_rank = *rank;
      }
    }
    if (best == ids.size()) return ids;
    ids[best] = table.rule(best_rank).merged;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Bpe, RankDecidesThenPlace) {
  MergeTable table;
  ASSERT_TRUE(table.add({'b', 'c', 256}));
  ASSERT_TRUE(table.add({'a', 'b', 257}));
  EXPECT_EQ(tokens_of(table, "abc"), (Ids{'a', 256})) << "bc has the lower rank";
  EXPECT_EQ(tokens_of(table, "abab"), (Ids{257, 257}));
  MergeTable twins;
  ASSERT_TRUE(twins.add({'a', 'a', 256}));
  EXPECT_EQ(tokens_of(twins, "aaa"), (Ids{256, 'a'})) << "leftmost first";
}

TEST(Bpe, APairIsListedOnce) {
  MergeTable table;
  EXPECT_TRUE(table.add({1, 2, 300}));
  EXPECT_FALSE(table.add({1, 2, 301}));
  EXPECT_TRUE(table.add({2, 1, 301}));
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(table.find(1, 2), 0u);
  EXPECT_EQ(table.find(2, 2), std::nullopt);
}

TEST(Bpe, TheTableGrowsPastItsFirstSize) {
  MergeTable table;
  for (int32_t i = 0; i < 5000; ++i) ASSERT_TRUE(table.add({i, i + 1, 10'000 + i}));
  for (int32_t i = 0; i < 5000; ++i) EXPECT_EQ(table.find(i, i + 1), static_cast<uint32_t>(i));
}

TEST(Bpe, AgreesWithTheDefinitionOnRandomMerges) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    MergeTable table;
    int32_t next = 256;
    const auto any = [&] {
      const auto pick = static_cast<int32_t>(random() % static_cast<uint32_t>(next - 256 + 3));
      return pick < 3 ? 'a' + pick : 253 + pick;
    };
    for (int i = 0; i < 25; ++i) {
      if (table.add({any(), any(), next})) ++next;
    }
    std::string text(1 + random() % 60, 'a');
    for (char& c : text) c = static_cast<char>('a' + random() % 3);
    EXPECT_EQ(tokens_of(table, text), naive_tokens(table, text)) << text;
  }
}

TEST(Bpe, LongRunsWithDeepMerges) {
  MergeTable table;  // a doubled 20 times
  int32_t left = 'a';
  for (int32_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(table.add({left, left, 256 + i}));
    left = 256 + i;
  }
  EXPECT_EQ(tokens_of(table, std::string(1 << 20, 'a')), Ids{275});
  EXPECT_EQ(tokens_of(table, std::string((1 << 20) - 1, 'a')).size(), 20u);
}

}  // namespace
}  // namespace topknot::tokenizer
