#include "device/cpu/memory_facts.h"

#include <gtest/gtest.h>

#include "device/cpu/fake_root.h"
#include "device/cpu/small_file.h"

namespace topknot::device {
namespace {

constexpr uint64_t kGib = 1ull << 30;
constexpr const char* kMeminfo =
    "MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:    8388608 kB\n";

TEST(MemoryFacts, WithoutALimitAreTheMachines) {
  const FakeRoot root;
  root.write("proc/meminfo", kMeminfo);
  root.write("proc/self/cgroup", "0::/user.slice\n");
  root.write("sys/fs/cgroup/user.slice/memory.max", "max\n");
  const auto facts = memory_facts(root.path());
  EXPECT_EQ(facts.total_bytes, 16 * kGib);
  EXPECT_EQ(facts.available_bytes, 8 * kGib);
  EXPECT_FALSE(facts.limited_by_cgroup);
}

TEST(MemoryFacts, AnOldKernelWithoutMemAvailableFallsBackToMemFree) {
  const FakeRoot root;
  root.write("proc/meminfo", "MemTotal: 2048 kB\nMemFree: 1024 kB\n");
  EXPECT_EQ(memory_facts(root.path()).available_bytes, 1024u * 1024u);
}

TEST(MemoryFacts, ALimitOfAGroupAboveBinds) {
  const FakeRoot root;
  root.write("proc/meminfo", kMeminfo);
  root.write("proc/self/cgroup", "0::/box/inner\n");
  root.write("sys/fs/cgroup/box/inner/memory.max", "max\n");
  root.write("sys/fs/cgroup/box/memory.max", "4294967296\n");
  root.write("sys/fs/cgroup/box/memory.current", "3221225472\n");
  root.write("sys/fs/cgroup/box/memory.stat", "anon 1\nfile 3\ninactive_file 1073741824\n");
  const auto facts = memory_facts(root.path());
  EXPECT_TRUE(facts.limited_by_cgroup);
  EXPECT_EQ(facts.total_bytes, 4 * kGib);
  EXPECT_EQ(facts.available_bytes, 2 * kGib) << "inactive file pages can be had back";
}

TEST(MemoryFacts, AContainerMayNotSeeItsOwnPath) {
  const FakeRoot root;
  root.write("proc/meminfo", kMeminfo);
  root.write("proc/self/cgroup", "0::/docker/0123\n");
  root.write("sys/fs/cgroup/memory.max", "1073741824\n");
  root.write("sys/fs/cgroup/memory.current", "2147483648\n");
  const auto facts = memory_facts(root.path());
  EXPECT_EQ(facts.total_bytes, kGib);
  EXPECT_EQ(facts.available_bytes, 0u) << "over the limit: nothing, not a huge number";
}

TEST(MemoryFacts, VersionOneGroupsCountToo) {
  const FakeRoot root;
  root.write("proc/meminfo", kMeminfo);
  root.write("proc/self/cgroup", "5:cpu,cpuacct:/job\n4:memory:/job\n");
  root.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2147483648\n");
  root.write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1073741824\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  const auto facts = memory_facts(root.path());
  EXPECT_EQ(facts.total_bytes, 2 * kGib);
  EXPECT_EQ(facts.available_bytes, kGib);
}

TEST(MemoryFacts, WithoutProcAreZero) {
  const FakeRoot root;
  EXPECT_EQ(memory_facts(root.path()).total_bytes, 0u);
}

TEST(MemoryFacts, OfThisMachineAreSane) {
  const auto facts = memory_facts();
  EXPECT_GT(facts.total_bytes, 64u << 20);
  EXPECT_GT(facts.available_bytes, 0u);
  EXPECT_LE(facts.available_bytes, facts.total_bytes);
}

TEST(CpuQuota, IsTheTightestOnTheWay) {
  const FakeRoot root;
  root.write("proc/self/cgroup", "0::/a/b\n");
  root.write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  root.write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  EXPECT_EQ(cpu_quota(root.path()), 1.5);
}

TEST(CpuQuota, OfVersionOne) {
  const FakeRoot root;
  root.write("proc/self/cgroup", "5:cpu,cpuacct:/job\n");
  root.write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "200000\n");
  root.write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(root.path()), 2.0);
}

TEST(CpuQuota, IsNoneWithoutGroupsOrWithNonsense) {
  const FakeRoot root;
  EXPECT_EQ(cpu_quota(root.path()), std::nullopt);
  root.write("sys/fs/cgroup/cpu.max", "100000 0\n");
  EXPECT_EQ(cpu_quota(root.path()), std::nullopt);
}

TEST(SmallFile, NumbersStandAfterWholeKeysOnly) {
  EXPECT_EQ(number_after("total_inactive_file 9\ninactive_file 7\n", "inactive_file"), 7u);
  EXPECT_EQ(number_after("inactive_files 7\n", "inactive_file"), std::nullopt);
  EXPECT_EQ(number_after("MemTotal: many kB\n", "MemTotal:"), std::nullopt);
  EXPECT_EQ(parse_number("18446744073709551616"), std::nullopt) << "does not fit";
}

}  // namespace
}  // namespace topknot::device
