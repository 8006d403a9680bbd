#include "plan/placement.h"

#include <gtest/gtest.h>

namespace topknot::plan {
namespace {

TEST(Placement, SharesAddUpAndAreCutBetweenUnits) {
  for (const int64_t total : {1, 2, 64, 154'880, 1408, 2048, 12'288}) {
    for (const int64_t unit : {1, 2, 32, 256}) {
      for (const int ranks : {1, 2, 3, 6, 7, 8}) {
        int64_t sum = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          const int64_t share = share_of(total, unit, ranks, rank);
          sum += share;
          EXPECT_GE(share, 0);
          EXPECT_TRUE(sum % unit == 0 || sum == total) << total << " / " << ranks;
          EXPECT_LE(share, share_of(total, unit, ranks, 0)) << "the first has most";
        }
        EXPECT_EQ(sum, total);
      }
    }
  }
}

// GLM-5's experts, 2048 wide in blocks of 256, on three cards.
TEST(Placement, UnevenSharesOfMlpsAreTurnedFromLayerToLayer) {
  constexpr int kRanks = 3;
  int64_t sums[kRanks] = {};
  for (int64_t layer = 0; layer < 75; ++layer) {
    for (int rank = 0; rank < kRanks; ++rank) {
      sums[rank] += share_of(2048, 256, kRanks, turned_rank(rank, layer, kRanks));
    }
  }
  EXPECT_EQ(sums[0], sums[1]);
  EXPECT_EQ(sums[1], sums[2]);
}

TEST(Placement, NoRankIsWithoutHeads) {
  model::ModelConfig config;
  config.heads = 64;
  EXPECT_TRUE(check_split(config, {}, 64));
  const Status status = check_split(config, {}, 65);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().to_string().find("64 heads, 64 units"), std::string::npos);
  EXPECT_FALSE(check_split(config, {.heads = 2}, 33));
}

}  // namespace
}  // namespace topknot::plan
