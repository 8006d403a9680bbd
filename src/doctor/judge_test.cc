#include "doctor/judge.h"

#include <gmock/gmock.h>

#include <limits>

#include "doctor/test_support.h"

namespace topknot::doctor {
namespace {

using testing::HasSubstr;

Check row(const Findings& found, std::string_view name) {
  for (const Check& each : judge(found)) {
    if (each.name == name) return each;
  }
  ADD_FAILURE() << "no row is called " << name;
  return {};
}

void expect_broken(const Findings& found, std::string_view name, std::string_view text) {
  const Check check = row(found, name);
  EXPECT_EQ(check.verdict, Verdict::kProblem) << check.text;
  EXPECT_THAT(check.text, HasSubstr(std::string(text)));
  EXPECT_FALSE(check.remedy.empty());
  EXPECT_TRUE(anything_broken(judge(found)));
}

TEST(Judge, AHealthyMachineIsNotBroken) {
  for (const Findings& found : {healthy_host(), with_gpus(1), with_gpus(2)}) {
    const auto checks = judge(found);
    EXPECT_FALSE(anything_broken(checks));
    for (const Check& each : checks) {
      EXPECT_FALSE(each.text.empty()) << each.name;
      EXPECT_TRUE(each.verdict != Verdict::kNote || !each.remedy.empty()) << each.name;
    }
  }
}

TEST(Judge, AProbeThatComputedWrongShowsTheNumber) {
  Findings found = healthy_host();
  found.probes.push_back(probe_of("cpu_simd", "avx512", 0.125));
  expect_broken(found, "cpu_simd",
                "avx512 sparse is WRONG: largest difference 1.2e-01, limit 3.0e-04");
  found.probes.back().largest_difference = std::numeric_limits<double>::infinity();
  expect_broken(found, "cpu_simd", "largest difference inf");
  found = healthy_host();
  found.probes.back().problem = "no memory for the tile";
  expect_broken(found, "cpu_simd", "portable sparse FAILED: no memory for the tile");
}

TEST(Judge, AGpuThatComputedWrongShowsTheNumber) {
  Findings found = with_gpus(2);
  found.gpus[1].probe_error = Error{.code = Code::kResource,
                                    .what = "the GPU does not run this program's code",
                                    .why = "element 7 of a sum is 21, not 22",
                                    .fix = "check nvidia-smi"};
  expect_broken(found, "cuda:1", "element 7 of a sum is 21, not 22");
  EXPECT_EQ(row(found, "cuda:0").verdict, Verdict::kOk);
}

TEST(Judge, AGpuThatCannotBeUsedIsBrokenOnlyInABuildForGpus) {
  Findings found = healthy_host();
  found.system.nvidia_gpus = 1;
  found.cuda.problem = "not built: this program has no GPU code";
  found.cuda.remedy = "configure with -DTOPKNOT_CUDA=ON";
  EXPECT_EQ(row(found, "GPUs").verdict, Verdict::kNote);
  found.cuda.built = true;
  found.cuda.problem = "no NVIDIA driver is installed";
  expect_broken(found, "GPUs", "no NVIDIA driver is installed");
  found.system.nvidia_gpus = 0;
  EXPECT_EQ(row(found, "GPUs").verdict, Verdict::kOk) << "nothing is there to be broken";
}

TEST(Judge, ADriverThatIsTooOldIsToldWithBothVersions) {
  Findings found = healthy_host();
  found.cuda.built = true;
  found.cuda.runtime_version = 13'000;
  found.cuda.driver_version = 12'040;
  found.cuda.problem = "CUDA driver version is insufficient for CUDA runtime version";
  found.cuda.remedy = "install an NVIDIA driver for CUDA 13 or newer";
  expect_broken(found, "GPUs", "the driver supports CUDA 12.4, this program uses 13.0");
}

TEST(Judge, WhatAnOwnerMayWantToChangeIsANote) {
  Findings found = with_gpus(2);
  found.host.cores = 4;
  EXPECT_THAT(row(found, "processor").text, HasSubstr("may use 4 of 16"));
  found.host.memory.limited_by_cgroup = true;
  EXPECT_EQ(row(found, "memory").verdict, Verdict::kNote);
  found.system.address_space_limit = uint64_t{8} << 30;
  EXPECT_THAT(row(found, "memory").remedy, HasSubstr("ulimit -v"));
  found.gpus[0].link.width = 4;
  EXPECT_THAT(row(found, "cuda:0").text, HasSubstr("PCIe x4 of x16"));
  EXPECT_EQ(row(found, "cuda:0").verdict, Verdict::kNote);
  found.peers->value().front().direct = false;
  EXPECT_THAT(row(found, "GPU pairs").text, HasSubstr("1 of 2 ordered pairs"));
  found.memory.own_node = Result<device::ReadBandwidth>(read_rate(180'000'000'000, 32));
  found.memory.other_node = Result<device::ReadBandwidth>(read_rate(60'000'000'000, 32));
  EXPECT_THAT(row(found, "NUMA").text, HasSubstr("60.0 GB/s from the last node's"));
  found.kernels = {{"avx2", false, {"avx2", "fma"}}, {"portable", true, {}}};
  EXPECT_THAT(row(found, "kernels").text, HasSubstr("avx2 lacks avx2 fma"));
  EXPECT_EQ(row(found, "kernels").verdict, Verdict::kNote);
  EXPECT_FALSE(anything_broken(judge(found)));
}

TEST(Judge, ADiskIsNotJudgedByThePageCache) {
  Findings found = healthy_host();
  device::FileReadRate rate{.bytes = uint64_t{1} << 30, .seconds = 1, .direct = true};
  found.disk = rate;
  EXPECT_EQ(row(found, "disk").verdict, Verdict::kOk);
  rate.direct = false;
  rate.cached_share = 0.75;
  found.disk = rate;
  EXPECT_THAT(row(found, "disk").text, HasSubstr("75 % of it was in memory"));
  rate = {.bytes = 1 << 20, .seconds = 1, .direct = true};
  found.disk = rate;
  EXPECT_THAT(row(found, "disk").text, HasSubstr("too little"));
}

TEST(Judge, WhatCouldNotBeMeasuredIsBroken) {
  Findings found = healthy_host();
  const Error error{.code = Code::kResource,
                    .what = "it failed",
                    .where = "/secret/place",
                    .why = "no room",
                    .fix = "make room"};
  found.memory.all_threads = Result<device::ReadBandwidth>(error);
  expect_broken(found, "memory rate", "it failed: no room");
  found = healthy_host();
  found.benchmark = Result<Benchmark>(error);
  expect_broken(found, "benchmark", "it failed: no room");
  for (const Check& each : judge(found)) {
    EXPECT_EQ(each.text.find("secret"), std::string::npos) << "a place may name its owner";
  }
}

TEST(Judge, TheBenchmarkIsComparedWithTheMemoryRate) {
  // 48 tokens a second of 125 MB are 6 GB/s, of 50.
  EXPECT_THAT(row(healthy_host(), "benchmark").text, HasSubstr("12 % of the memory rate"));
}

}  // namespace
}  // namespace topknot::doctor
