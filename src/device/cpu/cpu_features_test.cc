#include "device/cpu/cpu_features.h"

#include <gmock/gmock.h>

#include "device/cpu/small_file.h"

namespace topknot::device {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint32_t kFmaAndF16c = (1u << 12) | (1u << 29);
constexpr uint32_t kAvx2 = 1u << 5;
constexpr uint32_t kAvx512 = (1u << 16) | (1u << 30) | (1u << 31);

TEST(CpuFeatures, AreNamedFromTheirBits) {
  const CpuidAnswers haswell = {.leaf1_ecx = kFmaAndF16c, .leaf7_0_ebx = kAvx2, .xcr0 = 0x7};
  EXPECT_THAT(feature_names(features_from_cpuid(haswell)), ElementsAre("avx2", "fma", "f16c"));
  const CpuidAnswers sapphire_rapids = {.leaf1_ecx = kFmaAndF16c,
                                        .leaf7_0_ebx = kAvx2 | kAvx512,
                                        .leaf7_0_ecx = 1u << 11,
                                        .leaf7_0_edx = (1u << 22) | (1u << 24) | (1u << 25),
                                        .leaf7_1_eax = (1u << 4) | (1u << 5),
                                        .xcr0 = 0x602e7};
  EXPECT_THAT(feature_names(features_from_cpuid(sapphire_rapids)),
              ElementsAre("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512_vnni",
                          "avx512_bf16", "avx_vnni", "amx_tile", "amx_int8", "amx_bf16"));
}

TEST(CpuFeatures, AreAbsentWhenTheKernelDoesNotSaveTheirRegisters) {
  const CpuidAnswers no_xsave = {.leaf1_ecx = kFmaAndF16c, .leaf7_0_ebx = kAvx2 | kAvx512};
  EXPECT_THAT(feature_names(features_from_cpuid(no_xsave)), IsEmpty());
  CpuidAnswers no_zmm = no_xsave;
  no_zmm.xcr0 = 0x7;
  EXPECT_FALSE(features_from_cpuid(no_zmm).avx512f);
  EXPECT_TRUE(features_from_cpuid(no_zmm).avx2);
}

// The kernel lists what it enabled under the same names: an independent witness.
TEST(CpuFeatures, AgreeWithTheKernel) {
  const auto cpuinfo = read_small_file("/proc/cpuinfo");
  const auto flags = cpuinfo ? text_after(*cpuinfo, "flags") : std::nullopt;
  if (!flags) GTEST_SKIP() << "no flags line in /proc/cpuinfo (not x86)";
  const std::string padded = " " + *flags + " ";
  const CpuFeatures f = cpu_features();
  const auto listed = [&padded](const char* name) {
    return padded.find(std::string(" ") + name + " ") != std::string::npos;
  };
  EXPECT_EQ(f.avx2, listed("avx2"));
  EXPECT_EQ(f.fma, listed("fma"));
  EXPECT_EQ(f.f16c, listed("f16c"));
  EXPECT_EQ(f.avx512f, listed("avx512f"));
  EXPECT_EQ(f.avx512bw, listed("avx512bw"));
  EXPECT_EQ(f.avx512_vnni, listed("avx512_vnni"));
}

}  // namespace
}  // namespace topknot::device
