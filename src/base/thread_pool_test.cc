#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <vector>

namespace topknot {
namespace {

TEST(ThreadPool, EveryItemRunsOnceInEveryRound) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 300; ++round) {
      std::vector<std::atomic<int>> hits(static_cast<size_t>(round % 7 * 13));
      pool.parallel_for(static_cast<int64_t>(hits.size()), [&](int64_t i, int thread) {
        ASSERT_GE(thread, 0);
        ASSERT_LT(thread, threads);
        hits[static_cast<size_t>(i)].fetch_add(1);
      });
      for (const auto& hit : hits) ASSERT_EQ(hit.load(), 1);
    }
  }
}

TEST(ThreadPool, WakesWorkersThatWentToSleep) {
  ThreadPool pool(3);
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // past the spin: workers sleep
    std::atomic<int> sum{0};
    pool.parallel_for(100, [&](int64_t i, int) { sum.fetch_add(static_cast<int>(i)); });
    EXPECT_EQ(sum.load(), 4950);
  }
}

}  // namespace
}  // namespace topknot
