#include "device/cpu/system_facts.h"

#include <sys/resource.h>
#include <sys/utsname.h>

#include <array>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "device/cpu/host_facts.h"
#include "device/cpu/small_file.h"

namespace topknot::device {
namespace {

constexpr int kMaxPciDevices = 4096;  // looked at; more than any machine has

std::string text_of(const std::string& path) {
  return printable(read_small_file(path).value_or(""), 200);
}

// PRETTY_NAME="Debian GNU/Linux 12 (bookworm)", with or without quotes.
std::string find_os(const std::string& root) {
  const auto release = read_small_file(root + "/etc/os-release");
  if (!release) return {};
  constexpr std::string_view kKey = "PRETTY_NAME=";
  size_t at = release->starts_with(kKey) ? 0 : release->find(cat("\n", kKey));
  if (at == std::string::npos) return {};
  if (at > 0) ++at;
  std::string_view value = std::string_view(*release).substr(at + kKey.size());
  value = value.substr(0, value.find('\n'));
  if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'')) {
    value = value.substr(1, value.size() - 2);
  }
  return printable(value, 200);
}

bool file_exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

// Container engines leave a file, or their name in the control group's path of process 1.
std::string find_container(const std::string& root) {
  if (file_exists(root + "/run/.containerenv")) return "podman";
  const std::string groups = cat(read_small_file(root + "/proc/1/cgroup").value_or(""), "\n",
                                 read_small_file(root + "/proc/self/cgroup").value_or(""));
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kNames = {
      {{"kubepods", "kubernetes"},
       {"docker", "docker"},
       {"containerd", "containerd"},
       {"libpod", "podman"},
       {"lxc", "lxc"}}};
  for (const auto& [part, name] : kNames) {
    if (groups.find(part) != std::string::npos) return std::string(name);
  }
  return file_exists(root + "/.dockerenv") ? "docker" : "";
}

bool has_hypervisor(const std::string& root) {
  const auto cpuinfo = read_small_file(root + "/proc/cpuinfo");
  const auto flags = cpuinfo ? text_after(*cpuinfo, "flags") : std::nullopt;
  return flags && cat(" ", *flags, " ").find(" hypervisor ") != std::string::npos;
}

// One processor's largest cache, as its size and the processors that share it.
void add_last_level_cache(const std::string& folder,
                          std::set<std::pair<std::string, uint64_t>>* caches) {
  uint64_t deepest = 0;
  std::pair<std::string, uint64_t> found;
  for (int index = 0; index < kMaxCachesListed; ++index) {
    const std::string cache = cat(folder, "/cache/index", index);
    const auto level = read_small_file(cache + "/level");
    if (!level) break;
    const uint64_t depth = parse_number(*level).value_or(0);
    if (depth < deepest || text_of(cache + "/type") == "Instruction") continue;
    deepest = depth;
    found = {text_of(cache + "/shared_cpu_list"),
             parse_cache_size(read_small_file(cache + "/size").value_or("")).value_or(0)};
  }
  if (found.second > 0) caches->insert(found);
}

void count_processors(const std::string& root, SystemFacts* facts) {
  std::set<std::pair<std::string, std::string>> cores;
  std::set<std::pair<std::string, uint64_t>> caches;
  for (int index = 0; index < kMaxProcessorsListed; ++index) {
    const std::string folder = cat(root, "/sys/devices/system/cpu/cpu", index);
    const auto core = read_small_file(folder + "/topology/core_id");
    if (!core) continue;  // offline processors have no topology
    ++facts->processors;
    cores.insert({text_of(folder + "/topology/physical_package_id"), *core});
    add_last_level_cache(folder, &caches);
  }
  facts->physical_cores = static_cast<int>(cores.size());
  for (const auto& [shared_by, bytes] : caches) facts->last_level_cache_bytes += bytes;
}

// "always [madvise] never": the word in brackets.
std::string chosen_word(const std::string& text) {
  const size_t begin = text.find('[');
  const size_t end = text.find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  return text.substr(begin + 1, end - begin - 1);
}

std::optional<uint64_t> limit_of(decltype(RLIMIT_AS) resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) return std::nullopt;
  if (limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

// Display controllers of NVIDIA: class 03xxxx, vendor 10de.
int count_nvidia_gpus(const std::string& root) {
  int count = 0;
  int seen = 0;
  std::error_code error;
  std::filesystem::directory_iterator each(root + "/sys/bus/pci/devices", error);
  for (; !error && each != std::filesystem::directory_iterator() && seen < kMaxPciDevices;
       each.increment(error), ++seen) {
    const std::string folder = each->path().string();
    if (text_of(folder + "/vendor") != "0x10de") continue;
    if (text_of(folder + "/class").starts_with("0x03")) ++count;
  }
  return count;
}

}  // namespace

std::string kernel_release(const std::string& release, const std::string& host_name) {
  if (host_name.empty() || release.find(host_name) == std::string::npos) return release;
  return release.substr(0, release.find_first_not_of("0123456789."));
}

SystemFacts system_facts(const std::string& root) {
  SystemFacts facts;
  facts.os = find_os(root);
  utsname name{};
  if (::uname(&name) == 0) {
    facts.kernel = printable(kernel_release(name.release, name.nodename), 200);
    facts.architecture = name.machine;
  }
  facts.virtual_machine = has_hypervisor(root);
  facts.container = find_container(root);
  count_processors(root, &facts);
  facts.governor = text_of(root + "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  facts.huge_pages = chosen_word(text_of(root + "/sys/kernel/mm/transparent_hugepage/enabled"));
  facts.processor_quota = cpu_quota(root);
  facts.address_space_limit = limit_of(RLIMIT_AS);
  facts.locked_memory_limit = limit_of(RLIMIT_MEMLOCK);
  facts.nvidia_gpus = count_nvidia_gpus(root);
  facts.nvidia_driver = text_of(root + "/sys/module/nvidia/version");
  return facts;
}

}  // namespace topknot::device
