#include "device/cpu/host_facts.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/strings.h"
#include "base/thread_pool.h"
#include "device/cpu/small_file.h"

namespace topknot::device {
namespace {

std::string find_cpu_name(const std::string& root) {
  const auto cpuinfo = read_small_file(root + "/proc/cpuinfo");
  if (cpuinfo) {
    for (const char* key : {"model name", "Model", "Processor"}) {
      if (const auto name = text_after(*cpuinfo, key)) return printable(*name, 200);
    }
    // arm64 gives numbers only.
    const auto implementer = text_after(*cpuinfo, "CPU implementer");
    const auto part = text_after(*cpuinfo, "CPU part");
    if (implementer && part) {
      return cat("implementer ", printable(*implementer), " part ", printable(*part));
    }
  }
  return "unknown";
}

uint64_t number_in(const std::string& path) {
  const auto text = read_small_file(path);
  return text ? parse_number(*text).value_or(0) : 0;
}

std::vector<Cache> find_caches(const std::string& root) {
  std::vector<Cache> caches;
  for (int index = 0; index < kMaxCachesListed; ++index) {
    const std::string folder = cat(root, "/sys/devices/system/cpu/cpu0/cache/index", index);
    const auto size = read_small_file(folder + "/size");
    if (!size) break;
    caches.push_back({.level = static_cast<int>(number_in(folder + "/level")),
                      .type = printable(read_small_file(folder + "/type").value_or("")),
                      .bytes = parse_cache_size(*size).value_or(0),
                      .line_bytes = static_cast<int>(number_in(folder + "/coherency_line_size"))});
  }
  return caches;
}

std::vector<NumaNode> find_numa_nodes(const std::string& root) {
  std::vector<NumaNode> nodes;
  for (int index = 0; index < kMaxNumaNodesListed; ++index) {
    const std::string folder = cat(root, "/sys/devices/system/node/node", index);
    const auto cpus = read_small_file(folder + "/cpulist");
    if (!cpus) continue;  // nodes may be numbered with gaps
    const auto meminfo = read_small_file(folder + "/meminfo");
    const auto total_kb =
        meminfo ? number_after(*meminfo, cat("Node ", index, " MemTotal:")) : std::nullopt;
    nodes.push_back({.index = index,
                     .memory_bytes = total_kb.value_or(0) * 1024,
                     .cpus = printable(*cpus, 1000)});
  }
  return nodes;
}

int count_sockets(const std::string& root) {
  std::set<uint64_t> packages;
  for (int index = 0; index < kMaxProcessorsListed; ++index) {
    const std::string folder = cat(root, "/sys/devices/system/cpu/cpu", index);
    const auto text = read_small_file(folder + "/topology/physical_package_id");
    if (!text) continue;  // offline processors leave gaps
    if (const auto package = parse_number(*text)) packages.insert(*package);  // -1: not told
  }
  return static_cast<int>(packages.size());
}

int usable_cores(const std::string& root) {
  const int cores = available_cores();
  const auto quota = cpu_quota(root);
  if (!quota || *quota >= cores) return cores;
  return std::max(1, static_cast<int>(std::ceil(*quota)));
}

}  // namespace

std::optional<uint64_t> parse_cache_size(std::string_view text) {
  uint64_t unit = 1;
  if (text.ends_with('K')) unit = 1 << 10;
  if (text.ends_with('M')) unit = 1 << 20;
  if (unit != 1) text.remove_suffix(1);
  const auto value = parse_number(text);
  if (!value || *value > UINT64_MAX / unit) return std::nullopt;
  return *value * unit;
}

HostFacts host_facts(const std::string& root) {
  return {.cpu_name = find_cpu_name(root),
          .cores = usable_cores(root),
          .sockets = count_sockets(root),
          .features = cpu_features(),
          .memory = memory_facts(root),
          .caches = find_caches(root),
          .numa_nodes = find_numa_nodes(root)};
}

}  // namespace topknot::device
