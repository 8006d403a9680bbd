// No times are asserted: a shared machine keeps none.
#include "device/cpu/read_bandwidth.h"

#include <gtest/gtest.h>

namespace topknot::device {
namespace {

TEST(ReadBandwidth, OfEveryProcessorIsARate) {
  const ReadRequest request{
      .readers = usable_processors(), .owners = {}, .bytes = 8 << 20, .seconds = 0.01};
  const auto measured = measure_read_bandwidth(request);
  ASSERT_TRUE(measured) << measured.error().to_string();
  EXPECT_GT(measured->bytes_per_second, 0u);
  EXPECT_EQ(measured->threads, static_cast<int>(request.readers.size()));
  EXPECT_GE(measured->bytes, 8u << 20);
  EXPECT_GE(measured->rounds, kMinBandwidthRounds);
}

TEST(ReadBandwidth, ReadsMemoryOfAnotherProcessor) {
  const std::vector<int> all = usable_processors();
  const auto measured = measure_read_bandwidth(
      {.readers = {all.front()}, .owners = {all.back()}, .bytes = 4 << 20, .seconds = 0.01});
  ASSERT_TRUE(measured) << measured.error().to_string();
  EXPECT_EQ(measured->threads, 1);
}

TEST(ReadBandwidth, WhatIsRefusedIsAnErrorNotAHang) {
  const auto none = measure_read_bandwidth({});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kInvalidArgument);
  const int here = usable_processors().front();
  EXPECT_FALSE(measure_read_bandwidth({.readers = {here}, .owners = {here, here}}));
  const auto absent = measure_read_bandwidth({.readers = {here, 65'000}, .bytes = 2 << 20});
  ASSERT_FALSE(absent) << "there is no such processor";
  EXPECT_EQ(absent.error().code, Code::kResource);
  const auto too_much = measure_read_bandwidth({.readers = {here}, .bytes = uint64_t{1} << 60});
  ASSERT_FALSE(too_much);
  EXPECT_EQ(too_much.error().code, Code::kResource);
}

TEST(ProcessorList, IsReadAsTheKernelWritesIt) {
  EXPECT_EQ(parse_processor_list("0-3,8"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(parse_processor_list("5"), std::vector<int>{5});
  EXPECT_TRUE(parse_processor_list("").empty());
  EXPECT_TRUE(parse_processor_list("3-1").empty());
  EXPECT_TRUE(parse_processor_list("0-99999999999").empty());
  EXPECT_TRUE(parse_processor_list("all").empty());
}

}  // namespace
}  // namespace topknot::device
