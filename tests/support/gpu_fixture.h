// A test on the first GPU: skips where there is none, saying why, and moves vectors there and back.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "device/cuda/cuda_facts.h"
#include "device/cuda/gpu.h"

namespace topknot::test {

class GpuFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    const device::CudaFacts facts = device::cuda_facts();
    if (facts.devices.empty()) GTEST_SKIP() << facts.problem << "; " << facts.remedy;
    auto made = device::Stream::create(0);
    ASSERT_TRUE(made) << made.error().to_string();
    stream_ = std::move(*made);
  }

  // Holds 0xFF: NaN as floats, none of what a kernel could mean as integers but -1.
  template <class T>
  device::DeviceBuffer poisoned(int64_t count) {
    auto buffer = device::DeviceBuffer::allocate(
        0, static_cast<size_t>(count > 0 ? count : 1) * sizeof(T), "a test");
    EXPECT_TRUE(buffer) << buffer.error().to_string();
    EXPECT_TRUE(device::fill(buffer->data(), 0xFF, buffer->bytes(), stream_));
    return std::move(*buffer);
  }
  template <class T>
  device::DeviceBuffer upload(const std::vector<T>& values) {
    auto buffer = poisoned<T>(static_cast<int64_t>(values.size()));
    EXPECT_TRUE(
        device::copy_to_device(buffer.data(), values.data(), values.size() * sizeof(T), stream_));
    return buffer;
  }
  template <class T>
  std::vector<T> download(const device::DeviceBuffer& buffer, int64_t count) {
    std::vector<T> values(static_cast<size_t>(count));
    const Status copied =
        device::copy_to_host(values.data(), buffer.data(), values.size() * sizeof(T), stream_);
    EXPECT_TRUE(copied) << copied.error().to_string();
    return values;
  }

  device::Stream stream_;
};

}  // namespace topknot::test
