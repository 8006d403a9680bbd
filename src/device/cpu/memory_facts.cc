#include "device/cpu/memory_facts.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "device/cpu/small_file.h"

namespace topknot::device {
namespace {

// The names under which one version of control groups keeps what we ask for.
struct CgroupVersion {
  const char* mount;       // below the root
  const char* controller;  // its field in /proc/self/cgroup; empty in version 2
  const char* limit;
  const char* usage;
  const char* reclaimable;  // key in memory.stat: file pages that the kernel drops before it kills
};
constexpr CgroupVersion kMemoryV2 = {"sys/fs/cgroup", "", "memory.max", "memory.current",
                                     "inactive_file"};
constexpr CgroupVersion kMemoryV1 = {"sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes",
                                     "memory.usage_in_bytes", "total_inactive_file"};

bool has_controller(std::string_view list, std::string_view wanted) {
  if (wanted.empty()) return list.empty();
  while (!list.empty()) {
    const size_t comma = list.find(',');
    if (list.substr(0, comma) == wanted) return true;
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return false;
}

// Path of this process's group for one controller, from lines "id:controllers:path".
std::string group_path(const std::string& root, std::string_view controller) {
  const auto text = read_small_file(root + "/proc/self/cgroup");
  std::string_view rest = text ? std::string_view(*text) : std::string_view{};
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second != std::string_view::npos &&
        has_controller(line.substr(first + 1, second - first - 1), controller)) {
      return std::string(line.substr(second + 1));
    }
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  return "/";
}

// The group's folder and those above it, up to the mount: a limit anywhere on the way binds. Inside
// a container the path may be the host's and not exist here; the mount itself is then the group.
std::vector<std::string> group_folders(const std::string& root, const char* mount,
                                       std::string_view controller) {
  std::string path = group_path(root, controller);
  std::vector<std::string> folders;
  while (path.size() > 1) {
    folders.push_back(cat(root, "/", mount, path));
    path.resize(path.rfind('/'));
  }
  folders.push_back(cat(root, "/", mount));
  return folders;
}

void apply_limits(const std::string& root, const CgroupVersion& version, MemoryFacts* facts) {
  for (const auto& folder : group_folders(root, version.mount, version.controller)) {
    const auto limit_text = read_small_file(cat(folder, "/", version.limit));
    if (!limit_text) continue;
    const auto limit = parse_number(*limit_text);
    // "max", or version 1's huge number: no limit here.
    if (!limit || *limit >= facts->total_bytes) continue;
    facts->total_bytes = *limit;
    facts->limited_by_cgroup = true;
    const auto usage_text = read_small_file(cat(folder, "/", version.usage));
    const auto stat = read_small_file(folder + "/memory.stat");
    const uint64_t usage = usage_text ? parse_number(*usage_text).value_or(0) : 0;
    const uint64_t reclaimable = stat ? number_after(*stat, version.reclaimable).value_or(0) : 0;
    const uint64_t held = usage - std::min(usage, reclaimable);
    facts->available_bytes = std::min(facts->available_bytes, *limit - std::min(*limit, held));
  }
}

std::optional<double> quota_of_v2(const std::string& folder) {
  const auto text = read_small_file(folder + "/cpu.max");  // "150000 100000" or "max 100000"
  if (!text) return std::nullopt;
  const size_t blank = text->find(' ');
  if (blank == std::string::npos) return std::nullopt;
  const auto quota = parse_number(std::string_view(*text).substr(0, blank));
  const auto period = parse_number(std::string_view(*text).substr(blank + 1));
  if (!quota || !period || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<double> quota_of_v1(const std::string& folder) {
  const auto quota_text = read_small_file(folder + "/cpu.cfs_quota_us");  // -1: no limit
  const auto period_text = read_small_file(folder + "/cpu.cfs_period_us");
  if (!quota_text || !period_text) return std::nullopt;
  const auto quota = parse_number(*quota_text);
  const auto period = parse_number(*period_text);
  if (!quota || !period || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

}  // namespace

MemoryFacts memory_facts(const std::string& root) {
  MemoryFacts facts;
  const auto meminfo = read_small_file(root + "/proc/meminfo");
  if (!meminfo) return facts;
  constexpr uint64_t kBytesPerKb = 1024;  // the file says kB and means KiB
  const uint64_t free_kb = number_after(*meminfo, "MemFree:").value_or(0);
  facts.total_bytes = number_after(*meminfo, "MemTotal:").value_or(0) * kBytesPerKb;
  facts.available_bytes = number_after(*meminfo, "MemAvailable:").value_or(free_kb) * kBytesPerKb;
  apply_limits(root, kMemoryV2, &facts);
  apply_limits(root, kMemoryV1, &facts);
  return facts;
}

std::optional<double> cpu_quota(const std::string& root) {
  std::optional<double> tightest;
  const auto consider = [&tightest](std::optional<double> quota) {
    if (quota && (!tightest || *quota < *tightest)) tightest = quota;
  };
  for (const auto& folder : group_folders(root, kMemoryV2.mount, "")) {
    consider(quota_of_v2(folder));
  }
  for (const char* mount : {"sys/fs/cgroup/cpu", "sys/fs/cgroup/cpu,cpuacct"}) {
    for (const auto& folder : group_folders(root, mount, "cpu")) consider(quota_of_v1(folder));
  }
  return tightest;
}

}  // namespace topknot::device
