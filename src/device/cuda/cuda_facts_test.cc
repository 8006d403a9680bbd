// Runs on every machine, with or without a GPU or GPU code: absence must be a fact, not a failure.
#include "device/cuda/cuda_facts.h"

#include <gmock/gmock.h>

#include <string_view>

#include "topknot/version.h"

namespace topknot::device {
namespace {

TEST(CudaFacts, EitherListDevicesOrSayWhyNotAndWhatToDo) {
  const auto facts = cuda_facts();
  EXPECT_EQ(facts.devices.empty(), !facts.problem.empty());
  EXPECT_EQ(facts.devices.empty(), !facts.remedy.empty());
}

TEST(CudaFacts, OfABuildWithoutGpuCodeNameTheOption) {
  if (!std::string_view(build_info().cuda_architectures).empty()) {
    GTEST_SKIP() << "built with GPU code";
  }
  const auto facts = cuda_facts();
  EXPECT_FALSE(facts.built);
  EXPECT_THAT(facts.remedy, ::testing::HasSubstr("-DTOPKNOT_CUDA=ON"));
  const auto probed = probe_cuda(0);
  ASSERT_FALSE(probed);
  EXPECT_EQ(probed.error().code, Code::kUnsupported);
}

TEST(CudaFacts, OfABuildWithGpuCodeNameTheRuntime) {
  if (std::string_view(build_info().cuda_architectures).empty()) {
    GTEST_SKIP() << "built without GPU code: configure with -DTOPKNOT_CUDA=ON";
  }
  const auto facts = cuda_facts();
  EXPECT_TRUE(facts.built);
  EXPECT_GE(facts.runtime_version, 12000);
}

TEST(ProbeCuda, OfADeviceThatIsNotThereIsAnError) {
  const auto probed = probe_cuda(1000);
  ASSERT_FALSE(probed);
  EXPECT_FALSE(probed.error().why.empty());
  EXPECT_FALSE(probed.error().fix.empty());
}

}  // namespace
}  // namespace topknot::device
