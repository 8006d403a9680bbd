// Needs a GPU and GPU code for it.
#include <gtest/gtest.h>

#include "device/cuda/cuda_facts.h"

namespace topknot::device {
namespace {

class GpuTest : public ::testing::Test {
 protected:
  void SetUp() override {
    facts_ = cuda_facts();
    if (facts_.devices.empty()) GTEST_SKIP() << facts_.problem << "; " << facts_.remedy;
  }
  CudaFacts facts_;
};

TEST_F(GpuTest, EveryDeviceIsDescribed) {
  EXPECT_GE(facts_.driver_version, facts_.runtime_version / 1000 * 1000);
  for (const auto& device : facts_.devices) {
    EXPECT_FALSE(device.name.empty());
    EXPECT_GE(device.sm, 70);
    EXPECT_GT(device.sm_count, 0);
    EXPECT_GE(device.shared_memory_per_block, 64 << 10);
    EXPECT_GE(device.shared_memory_per_sm, device.shared_memory_per_block);
    EXPECT_GT(device.memory_free_bytes, 0u);
    EXPECT_LE(device.memory_free_bytes, device.memory_total_bytes);
  }
}

TEST_F(GpuTest, TheProbeRunsOnEveryDevice) {
  for (const auto& device : facts_.devices) {
    const auto probed = probe_cuda(device.index);
    EXPECT_TRUE(probed.has_value()) << probed.error().to_string();
  }
}

}  // namespace
}  // namespace topknot::device
