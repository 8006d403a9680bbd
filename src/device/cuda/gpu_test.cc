// Needs a GPU, but for what a program without GPU code says.
#include "device/cuda/gpu.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "device/cuda/cuda_facts.h"

namespace topknot::device {
namespace {

class GpuMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const CudaFacts facts = cuda_facts();
    if (facts.devices.empty()) GTEST_SKIP() << facts.problem << "; " << facts.remedy;
    auto made = Stream::create(0);
    ASSERT_TRUE(made) << made.error().to_string();
    stream_ = std::move(*made);
  }
  Stream stream_;
};

TEST_F(GpuMemoryTest, WhatGoesToTheDeviceComesBack) {
  std::vector<int> sent(100'003);
  std::iota(sent.begin(), sent.end(), 7);
  const size_t bytes = sent.size() * sizeof(int);
  auto buffer = DeviceBuffer::allocate(0, bytes, "a test");
  ASSERT_TRUE(buffer) << buffer.error().to_string();
  ASSERT_TRUE(copy_to_device(buffer->data(), sent.data(), bytes, stream_));
  DeviceBuffer moved = std::move(*buffer);
  EXPECT_EQ(buffer->data(), nullptr);
  std::vector<int> received(sent.size());
  ASSERT_TRUE(copy_to_host(received.data(), moved.data(), bytes, stream_));
  EXPECT_EQ(received, sent);
}

TEST_F(GpuMemoryTest, MoreThanThereIsIsAnErrorThatNamesThePurpose) {
  const auto buffer = DeviceBuffer::allocate(0, size_t{1} << 50, "the key cache");
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().code, Code::kResource);
  EXPECT_NE(buffer.error().what.find("the key cache"), std::string::npos);
  // The failure is not sticky.
  EXPECT_TRUE(DeviceBuffer::allocate(0, 1024, "a test"));
}

TEST_F(GpuMemoryTest, AGraphReplaysWhatWasCapturedAndEventsTimeIt) {
  auto buffer = DeviceBuffer::allocate(0, 4096, "a test");
  ASSERT_TRUE(buffer);
  ASSERT_TRUE(fill(buffer->data(), 1, 4096, stream_));
  const auto graph =
      Graph::capture(stream_, [&] { return fill(buffer->data(), 2, 4096, stream_); });
  ASSERT_TRUE(graph) << graph.error().to_string();
  unsigned char byte = 0;
  ASSERT_TRUE(copy_to_host(&byte, buffer->data(), 1, stream_));
  EXPECT_EQ(byte, 1) << "a capture must not run";
  const auto begin = Event::create(0);
  const auto end = Event::create(0);
  ASSERT_TRUE(begin && end);
  ASSERT_TRUE(begin->record(stream_));
  ASSERT_TRUE(graph->launch(stream_));
  ASSERT_TRUE(end->record(stream_));
  ASSERT_TRUE(copy_to_host(&byte, buffer->as<char>() + 4095, 1, stream_));
  EXPECT_EQ(byte, 2);
  const auto elapsed = Event::elapsed_us(*begin, *end);
  ASSERT_TRUE(elapsed) << elapsed.error().to_string();
  EXPECT_GT(*elapsed, 0);
}

TEST_F(GpuMemoryTest, AFailedCaptureLeavesTheStreamUsable) {
  const auto graph = Graph::capture(
      stream_, [] { return Status(Error{.code = Code::kUnsupported, .what = "on purpose"}); });
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().what, "on purpose");
  EXPECT_TRUE(stream_.synchronize());
}

TEST(GpuAbsent, AnUnknownDeviceIsAnErrorNotACrash) {
  const auto buffer = DeviceBuffer::allocate(4096, 16, "a test");
  ASSERT_FALSE(buffer);
  EXPECT_EQ(buffer.error().where, "cuda:4096");
  EXPECT_FALSE(buffer.error().fix.empty());
  EXPECT_FALSE(Stream::create(4096));
  EXPECT_FALSE(Event::create(4096));
}

}  // namespace
}  // namespace topknot::device
