// No times are asserted: a shared machine keeps none.
#include "doctor/examine.h"

#include <gtest/gtest.h>

#include "doctor/judge.h"
#include "doctor/products.h"

namespace topknot::doctor {
namespace {

constexpr uint64_t kMib = 1 << 20;

TEST(BandwidthBytes, AreLargerThanTheCachesAndAPartOfMemory) {
  EXPECT_EQ(bandwidth_bytes(32 * kMib, uint64_t{64} << 30), 256 * kMib);
  EXPECT_EQ(bandwidth_bytes(1152 * kMib, uint64_t{512} << 30), 4 * 1152 * kMib);
  EXPECT_EQ(bandwidth_bytes(1152 * kMib, 2048 * kMib), 512 * kMib) << "a quarter of what is free";
  EXPECT_EQ(bandwidth_bytes(0, 0), 256 * kMib) << "nobody told";
}

TEST(SpreadOver, TakesProcessorsFromAllOfThem) {
  const std::vector<int> all = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(spread_over(all, 2), (std::vector<int>{0, 4}));
  EXPECT_EQ(spread_over(all, 8), all);
  EXPECT_EQ(spread_over(all, 100), all);
  EXPECT_EQ(spread_over(all, 0), std::vector<int>{0});
}

TEST(Products, OfEverySetAreRates) {
  for (const ops::Kernels* each : ops::available_kernels()) {
    const ProductRates rates = measure_products(*each, 2, 0.005);
    EXPECT_GT(rates.one_thread, 0u);
    EXPECT_GT(rates.all_threads, 0u);
  }
  const auto decoding = measure_decoding(*ops::available_kernels().back(), 0.002);
  EXPECT_EQ(decoding.size(), 5u);
  for (const DecodeRate& each : decoding) EXPECT_GT(each.bytes_per_second, 0u) << each.type;
}

TEST(KernelSets, TheOnesThatRunLackNothing) {
  const auto sets = find_kernel_sets();
  ASSERT_FALSE(sets.empty());
  EXPECT_TRUE(sets.back().runs) << "portable";
  for (const KernelSet& each : sets) {
    EXPECT_TRUE(!each.runs || each.missing.empty()) << each.name;
  }
}

TEST(Examine, FillsInEverything) {
  std::vector<std::string> steps;
  ExamineOptions options;
  options.quick = true;
  options.announce = [&](std::string_view step) { steps.emplace_back(step); };
  const auto found = examine(options);
  ASSERT_TRUE(found) << found.error().to_string();
  EXPECT_GE(steps.size(), 4u);
  EXPECT_EQ(found->date.size(), 10u);
  ASSERT_TRUE(found->memory.all_threads && *found->memory.all_threads);
  EXPECT_FALSE(found->products.empty());
  EXPECT_FALSE(found->probes.empty());
  EXPECT_FALSE(found->disk.has_value()) << "no file was named";
  ASSERT_TRUE(found->benchmark && *found->benchmark) << found->benchmark->error().to_string();
  const Benchmark& run = **found->benchmark;
  EXPECT_TRUE(run.sparse) << "the prompt is longer than top-k";
  EXPECT_EQ(run.tokens, 16);
  EXPECT_GT(run.bytes_per_token, 1u << 20);
  EXPECT_TRUE(run.least_token_seconds.has_value()) << "the plan had the measured rates";
}

TEST(Examine, StopsWhereItIsAsked) {
  const std::atomic<bool> cancel{true};
  const auto found = examine({.quick = true, .cancel = &cancel});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::kCancelled);
}

TEST(Examine, AFileThatIsNotThereIsTheUsersError) {
  const auto found = examine({.quick = true, .file = "/nowhere/model.gguf"});
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::kNotFound);
}

}  // namespace
}  // namespace topknot::doctor
