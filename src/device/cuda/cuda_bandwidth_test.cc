// Needs a GPU and GPU code for it. No times are asserted.
#include "device/cuda/cuda_bandwidth.h"

#include <gtest/gtest.h>

#include "device/cuda/cuda_facts.h"

namespace topknot::device {
namespace {

class GpuBandwidthTest : public ::testing::Test {
 protected:
  void SetUp() override {
    facts_ = cuda_facts();
    if (facts_.devices.empty()) GTEST_SKIP() << facts_.problem << "; " << facts_.remedy;
  }
  CudaFacts facts_;
};

// The sum that the kernel computed is checked inside.
TEST_F(GpuBandwidthTest, EveryDeviceReadsAndCopies) {
  for (const CudaDevice& device : facts_.devices) {
    const auto measured = measure_cuda_bandwidth(device.index, 0.01);
    ASSERT_TRUE(measured) << measured.error().to_string();
    EXPECT_GT(measured->read, 0u);
    EXPECT_GT(measured->host_to_device, 0u);
    EXPECT_GT(measured->device_to_host, 0u);
  }
}

TEST_F(GpuBandwidthTest, EveryOrderedPairIsMeasured) {
  const auto count = static_cast<int>(facts_.devices.size());
  if (count < 2) GTEST_SKIP() << "needs two GPUs, found one";
  const auto peers = measure_cuda_peers(count, 0.01);
  ASSERT_TRUE(peers) << peers.error().to_string();
  EXPECT_EQ(peers->size(), static_cast<size_t>(count) * static_cast<size_t>(count - 1));
  for (const CudaPeer& peer : *peers) EXPECT_GT(peer.bytes_per_second, 0u);
}

TEST_F(GpuBandwidthTest, ADeviceThatIsNotThereIsAnError) {
  const auto measured = measure_cuda_bandwidth(1000, 0.01);
  ASSERT_FALSE(measured);
  EXPECT_EQ(measured.error().code, Code::kNotFound);
}

}  // namespace
}  // namespace topknot::device
