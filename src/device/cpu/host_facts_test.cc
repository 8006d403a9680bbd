#include "device/cpu/host_facts.h"

#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "device/cpu/fake_root.h"

namespace topknot::device {
namespace {

TEST(HostFacts, AreReadFromTheKernelsFiles) {
  const FakeRoot root;
  root.write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Example CPU @ 2 GHz\n");
  root.write("proc/meminfo", "MemTotal: 2048 kB\nMemAvailable: 1024 kB\n");
  const std::string cache = "sys/devices/system/cpu/cpu0/cache/";
  root.write(cache + "index0/size", "48K\n");
  root.write(cache + "index0/level", "1\n");
  root.write(cache + "index0/type", "Data\n");
  root.write(cache + "index0/coherency_line_size", "64\n");
  root.write(cache + "index1/size", "36M\n");
  root.write(cache + "index1/level", "3\n");
  root.write("sys/devices/system/node/node0/cpulist", "0-3\n");
  root.write("sys/devices/system/node/node2/cpulist", "4-7\n");
  root.write("sys/devices/system/node/node2/meminfo", "Node 2 MemTotal:    4096 kB\n");
  const auto facts = host_facts(root.path());
  EXPECT_EQ(facts.cpu_name, "Example CPU @ 2 GHz");
  EXPECT_EQ(facts.memory.total_bytes, 2048u * 1024u);
  ASSERT_EQ(facts.caches.size(), 2u);
  EXPECT_EQ(facts.caches[0].bytes, 48u << 10);
  EXPECT_EQ(facts.caches[0].line_bytes, 64);
  EXPECT_EQ(facts.caches[1].bytes, 36u << 20);
  EXPECT_EQ(facts.caches[1].level, 3);
  ASSERT_EQ(facts.numa_nodes.size(), 2u) << "node 1 is a gap, not the end";
  EXPECT_EQ(facts.numa_nodes[1].index, 2);
  EXPECT_EQ(facts.numa_nodes[1].memory_bytes, 4096u * 1024u);
}

TEST(HostFacts, SocketsAreCountedOverOfflineProcessors) {
  const FakeRoot root;
  EXPECT_EQ(host_facts(root.path()).sockets, 0) << "the kernel did not tell";
  const std::string cpu = "sys/devices/system/cpu/cpu";
  root.write(cpu + "0/topology/physical_package_id", "0\n");
  root.write(cpu + "1/topology/physical_package_id", "0\n");
  root.write(cpu + "7/topology/physical_package_id", "1\n");
  root.write(cpu + "8/topology/physical_package_id", "-1\n");
  EXPECT_EQ(host_facts(root.path()).sockets, 2);
}

TEST(HostFacts, CoresAreBoundedByTheQuota) {
  const FakeRoot root;
  root.write("proc/self/cgroup", "0::/\n");
  root.write("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(host_facts(root.path()).cores, 1) << "half a core is still a core";
  root.write("sys/fs/cgroup/cpu.max", "99900000 100000\n");
  EXPECT_EQ(host_facts(root.path()).cores, available_cores());
}

TEST(HostFacts, AnEmptyMachineStillHasACore) {
  const FakeRoot root;
  const auto facts = host_facts(root.path());
  EXPECT_EQ(facts.cpu_name, "unknown");
  EXPECT_GE(facts.cores, 1);
  EXPECT_TRUE(facts.caches.empty());
}

}  // namespace
}  // namespace topknot::device
