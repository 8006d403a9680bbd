#include "kvcache/slot_map.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace topknot::kvcache {
namespace {

TEST(SlotMap, FollowsTheBlockTableAtAnyPageSize) {
  std::mt19937 random(3);
  for (const int32_t page_tokens : {1, 16, 64, 256}) {
    constexpr int64_t kPages = 7;
    std::vector<int32_t> table(2 * kPages);
    for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<int32_t>((i * 5 + 3) % 11);
    table[kPages + 1] = table[1];  // a page both requests share
    const int64_t width = 40;
    std::vector<int32_t> positions;
    std::vector<int32_t> requests = {1, 0, 1};
    for (int64_t i = 0; i < 3 * width; ++i) {
      positions.push_back(i % 9 == 0 ? kNoSlot
                                     : static_cast<int32_t>(random() % (kPages * page_tokens)));
    }
    std::vector<int32_t> slots(positions.size(), 77);
    std::vector<int32_t> valid(3);
    EXPECT_EQ(map_slots({positions, requests, table, 3, width, kPages, page_tokens, slots, valid}),
              0);
    for (size_t i = 0; i < positions.size(); ++i) {
      const size_t request = static_cast<size_t>(requests[i / width]);
      const int32_t p = positions[i];
      const int32_t want =
          p < 0 ? kNoSlot
                : table[request * kPages + static_cast<size_t>(p / page_tokens)] * page_tokens +
                      p % page_tokens;
      ASSERT_EQ(slots[i], want);
    }
    for (size_t t = 0; t < 3; ++t) {
      int32_t count = 0;
      for (int64_t i = 0; i < width; ++i) count += positions[t * width + i] >= 0;
      EXPECT_EQ(valid[t], count);
    }
  }
}

TEST(SlotMap, WhatLiesOutsideTheTableBecomesNoneAndIsCounted) {
  const std::vector<int32_t> table = {4, -1};
  const std::vector<int32_t> positions = {0, 63, 64, 128, -1};
  const std::vector<int32_t> requests = {0};
  std::vector<int32_t> slots(5);
  std::vector<int32_t> valid(1);
  EXPECT_EQ(map_slots({positions, requests, table, 1, 5, 2, 64, slots, valid}), 2);
  EXPECT_EQ(slots, (std::vector<int32_t>{256, 319, -1, -1, -1}));
  EXPECT_EQ(valid[0], 2);
}

}  // namespace
}  // namespace topknot::kvcache
