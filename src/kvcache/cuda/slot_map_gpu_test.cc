// Needs a GPU. Oracle: map_slots().
#include <limits>
#include <random>
#include <vector>

#include "kvcache/cuda/cuda_slot_map.h"
#include "kvcache/slot_map.h"
#include "support/gpu_fixture.h"

namespace topknot::kvcache {
namespace {

struct Rows {
  int64_t tokens;
  int64_t width;
};

class CudaSlotMapTest : public test::GpuFixture {
 protected:
  // Some positions are none, beyond the table, or on a page that is not there.
  void compare(Rows rows, int32_t page_tokens, bool in_place) {
    constexpr int64_t kRequests = 3, kPages = 9;
    std::mt19937 random(static_cast<uint32_t>(rows.tokens * 31 + rows.width + page_tokens));
    std::vector<int32_t> table(kRequests * kPages), requests, positions;
    // One page in 12 is missing, one so far behind that its slots do not fit.
    for (int32_t& page : table) {
      page = random() % 12 == 0 ? -1 : static_cast<int32_t>(random() % 1'000'000);
      if (random() % 12 == 0) page = std::numeric_limits<int32_t>::max() - 1;
    }
    for (int64_t t = 0; t < rows.tokens; ++t) requests.push_back(int32_t(random() % kRequests));
    for (int64_t i = 0; i < rows.tokens * rows.width; ++i) {
      const auto inside = static_cast<int32_t>(random() % (kPages * uint32_t(page_tokens)));
      positions.push_back(random() % 5 == 0    ? kNoSlot
                          : random() % 50 == 0 ? static_cast<int32_t>(random() >> 1)
                                               : inside);
    }
    const auto d_table = upload(table), d_requests = upload(requests);
    const auto d_positions = upload(positions);
    const auto count = static_cast<int64_t>(positions.size());
    const auto d_slots = poisoned<int32_t>(count), d_valid = poisoned<int32_t>(rows.tokens);
    const auto d_outside = upload(std::vector<unsigned long long>{5});
    const auto& d_out = in_place ? d_positions : d_slots;
    const CudaSlotMapArgs args = {d_positions.as<int32_t>(),
                                  d_requests.as<int32_t>(),
                                  d_table.as<int32_t>(),
                                  d_out.as<int32_t>(),
                                  d_valid.as<int32_t>(),
                                  d_outside.as<unsigned long long>(),
                                  rows.tokens,
                                  rows.width,
                                  kPages,
                                  page_tokens};
    ASSERT_EQ(launch_slot_map(args, static_cast<cudaStream_t>(stream_.get())), cudaSuccess);
    std::vector<int32_t> slots(positions.size()), valid(requests.size());
    const int64_t outside = map_slots(
        {positions, requests, table, rows.tokens, rows.width, kPages, page_tokens, slots, valid});
    EXPECT_EQ(download<int32_t>(d_out, count), slots);
    EXPECT_EQ(download<int32_t>(d_valid, rows.tokens), valid);
    EXPECT_EQ(download<unsigned long long>(d_outside, 1)[0],
              5 + static_cast<unsigned long long>(outside));
  }
};

TEST_F(CudaSlotMapTest, AgreesWithTheHostAtAnyPageSize) {
  for (const int32_t page_tokens : {1, 16, 64, 100, 256}) {
    for (const Rows rows : {Rows{1, 1}, {1, 2048}, {7, 33}, {64, 2048}}) {
      for (const bool in_place : {false, true}) compare(rows, page_tokens, in_place);
    }
  }
}

// T-4.4: more rows than a grid has in y.
TEST_F(CudaSlotMapTest, ManyRows) { compare({70'000, 5}, 64, false); }

TEST_F(CudaSlotMapTest, CountersMayBeLeftOut) {
  const auto table = upload(std::vector<int32_t>{4, -1});
  const auto positions = upload(std::vector<int32_t>{0, 63, 64, 128, -1});
  const auto requests = upload(std::vector<int32_t>{0});
  const CudaSlotMapArgs args = {positions.as<int32_t>(),
                                requests.as<int32_t>(),
                                table.as<int32_t>(),
                                positions.as<int32_t>(),
                                nullptr,
                                nullptr,
                                1,
                                5,
                                2,
                                64};
  ASSERT_EQ(launch_slot_map(args, static_cast<cudaStream_t>(stream_.get())), cudaSuccess);
  EXPECT_EQ(download<int32_t>(positions, 5), (std::vector<int32_t>{256, 319, -1, -1, -1}));
}

}  // namespace
}  // namespace topknot::kvcache
