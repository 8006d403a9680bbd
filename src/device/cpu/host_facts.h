// The host as plain data: what a plan needs to know about its processor and memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/cpu/cpu_features.h"
#include "device/cpu/memory_facts.h"

namespace topknot::device {

// More than any machine has; bounds what is listed, should /sys be something else.
inline constexpr int kMaxCachesListed = 32;
inline constexpr int kMaxNumaNodesListed = 1024;
inline constexpr int kMaxProcessorsListed = 1024;

struct Cache {
  int level = 0;
  std::string type;  // "Data", "Instruction" or "Unified"
  uint64_t bytes = 0;
  int line_bytes = 0;
};

struct NumaNode {
  int index = 0;
  uint64_t memory_bytes = 0;
  std::string cpus;  // as the kernel lists them: "0-15,32-47"
};

struct HostFacts {
  std::string cpu_name;
  int cores = 1;  // processors this process may use at once: affinity and the control group's quota
  int sockets = 0;  // processor packages; 0 where the kernel does not tell
  CpuFeatures features;
  MemoryFacts memory;
  std::vector<Cache> caches;  // those of processor 0; empty where the kernel does not tell
  std::vector<NumaNode> numa_nodes;
};

// `root` as for memory_facts(). What cannot be found out stays at its default.
HostFacts host_facts(const std::string& root = "/");

// "32K", "2048K", "36M": as the kernel writes the size of a cache; none for anything else.
std::optional<uint64_t> parse_cache_size(std::string_view text);

}  // namespace topknot::device
