// How much memory this process may use. A container's limit counts like missing memory: a plan that
// trusted MemTotal would be killed for it.
// Source: Linux Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace topknot::device {

struct MemoryFacts {
  uint64_t total_bytes = 0;      // the machine's memory or the tightest limit, whichever is less
  uint64_t available_bytes = 0;  // what can be taken now without swapping or being killed
  bool limited_by_cgroup = false;
};

// `root` is "/" but in tests, where it is a folder that holds proc/ and sys/.
// All zero when there is no /proc/meminfo.
MemoryFacts memory_facts(const std::string& root = "/");

// CPUs' worth of time that the control group grants, for instance 1.5; none without a limit.
std::optional<double> cpu_quota(const std::string& root = "/");

}  // namespace topknot::device
