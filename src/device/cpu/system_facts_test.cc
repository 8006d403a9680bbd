#include "device/cpu/system_facts.h"

#include <gtest/gtest.h>

#include "device/cpu/fake_root.h"

namespace topknot::device {
namespace {

TEST(SystemFacts, AreReadFromTheKernelsFiles) {
  const FakeRoot root;
  root.write("etc/os-release", "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
  root.write("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu sse2 hypervisor avx2\n");
  root.write("proc/1/cgroup", "0::/docker/0123456789abcdef\n");
  root.write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  root.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  root.write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  root.write("sys/module/nvidia/version", "575.57.08\n");
  const SystemFacts facts = system_facts(root.path());
  EXPECT_EQ(facts.os, "Debian GNU/Linux 12 (bookworm)");
  EXPECT_TRUE(facts.virtual_machine);
  EXPECT_EQ(facts.container, "docker");
  EXPECT_EQ(facts.huge_pages, "madvise");
  EXPECT_EQ(facts.governor, "powersave");
  EXPECT_EQ(facts.processor_quota, 1.5);
  EXPECT_EQ(facts.nvidia_driver, "575.57.08");
}

TEST(SystemFacts, OfAnEmptyRootAreMissingNotGuessed) {
  const FakeRoot root;
  const SystemFacts facts = system_facts(root.path());
  EXPECT_EQ(facts.os, "");
  EXPECT_FALSE(facts.virtual_machine);
  EXPECT_EQ(facts.container, "");
  EXPECT_EQ(facts.processors, 0);
  EXPECT_EQ(facts.last_level_cache_bytes, 0u);
  EXPECT_EQ(facts.nvidia_gpus, 0);
  EXPECT_FALSE(facts.processor_quota.has_value());
}

// Two cores of two threads, each core with a last-level cache of its own; processor 4 is offline.
TEST(SystemFacts, CountCoresAndCachesOnce) {
  const FakeRoot root;
  const std::string cpus = "sys/devices/system/cpu/cpu";
  for (int cpu = 0; cpu < 4; ++cpu) {
    const std::string folder = cpus + std::to_string(cpu);
    root.write(folder + "/topology/core_id", cpu < 2 ? "0\n" : "1\n");
    root.write(folder + "/topology/physical_package_id", "0\n");
    root.write(folder + "/cache/index0/level", "1\n");
    root.write(folder + "/cache/index0/type", "Data\n");
    root.write(folder + "/cache/index0/size", "32K\n");
    root.write(folder + "/cache/index1/level", "3\n");
    root.write(folder + "/cache/index1/type", "Unified\n");
    root.write(folder + "/cache/index1/size", "16M\n");
    root.write(folder + "/cache/index1/shared_cpu_list", cpu < 2 ? "0-1\n" : "2-3\n");
  }
  root.write(cpus + "4/online", "0\n");
  const SystemFacts facts = system_facts(root.path());
  EXPECT_EQ(facts.processors, 4);
  EXPECT_EQ(facts.physical_cores, 2);
  EXPECT_EQ(facts.last_level_cache_bytes, 32u << 20);
}

TEST(SystemFacts, NvidiaGpusAreFoundWithoutADriver) {
  const FakeRoot root;
  const std::string pci = "sys/bus/pci/devices/";
  root.write(pci + "0000:01:00.0/vendor", "0x10de\n");
  root.write(pci + "0000:01:00.0/class", "0x030000\n");
  root.write(pci + "0000:01:00.1/vendor", "0x10de\n");  // the card's sound device
  root.write(pci + "0000:01:00.1/class", "0x040300\n");
  root.write(pci + "0000:02:00.0/vendor", "0x10de\n");
  root.write(pci + "0000:02:00.0/class", "0x030200\n");
  root.write(pci + "0000:03:00.0/vendor", "0x1002\n");
  root.write(pci + "0000:03:00.0/class", "0x030000\n");
  EXPECT_EQ(system_facts(root.path()).nvidia_gpus, 2);
}

TEST(KernelRelease, LosesWhatHoldsTheHostsName) {
  EXPECT_EQ(kernel_release("6.8.0-45-generic", "ada"), "6.8.0-45-generic");
  EXPECT_EQ(kernel_release("6.8.12-ada-tuned", "ada"), "6.8.12");
  EXPECT_EQ(kernel_release("6.8.12", ""), "6.8.12");
}

}  // namespace
}  // namespace topknot::device
