#include "plan/target.h"

#include <algorithm>
#include <charconv>

#include "base/strings.h"
#include "base/try.h"

namespace topknot::plan {
namespace {

using capability::DeviceKind;
using capability::InstructionLevel;

struct Asked {
  DeviceKind kind;
  int first;
};

Result<Asked> parse_device(const device::Machine& machine, std::string_view text) {
  if (text.empty()) return Asked{machine.devices.front().kind, 0};
  if (text == "cpu") return Asked{DeviceKind::kCpu, 0};
  if (text == "cuda") return Asked{DeviceKind::kCuda, 0};
  constexpr std::string_view kPrefix = "cuda:";
  if (text.starts_with(kPrefix)) {
    const std::string_view digits = text.substr(kPrefix.size());
    int index = 0;
    const auto [end, problem] =
        std::from_chars(digits.data(), digits.data() + digits.size(), index);
    if (problem == std::errc() && end == digits.data() + digits.size() && index >= 0) {
      return Asked{DeviceKind::kCuda, index};
    }
  }
  return Error{.code = Code::kInvalidArgument,
               .what = cat("--device '", printable(text), "' is not a device"),
               .fix = "cpu, cuda:0, cuda:1, ..."};
}

Error no_device(const device::Machine& machine, const Asked& asked, int ranks, size_t count) {
  const bool cpu = asked.kind == DeviceKind::kCpu;
  const std::string name = cpu ? "cpu" : cat("cuda:", asked.first);
  return Error{
      .code = Code::kNotFound,
      .what = cpu || ranks == 1 ? cat("the machine has no ", name)
                                : cat("the machine has no ", ranks, " devices from ", name, " on"),
      .where = machine.name,
      .why = cat("it has ", count, " of that kind among ", machine.devices.size(),
                 machine.devices.size() == 1 ? " device" : " devices"),
      .fix = cpu ? "--device cuda:0, or --devices with a machine file that lists a cpu"
                 : "--device cpu, fewer ranks, or --devices with a file of such a machine"};
}

InstructionLevel level_of(const std::vector<std::string>& names) {
  const auto all = [&](std::initializer_list<std::string_view> wanted) {
    return std::all_of(wanted.begin(), wanted.end(), [&](std::string_view each) {
      return std::find(names.begin(), names.end(), each) != names.end();
    });
  };
  if (!all({"avx2", "fma"})) return InstructionLevel::kPortable;
  return all({"avx512f", "avx512bw", "avx512vl"}) ? InstructionLevel::kAvx512
                                                  : InstructionLevel::kAvx2;
}

}  // namespace

std::string Target::device_name(int rank) const {
  return on_host() ? "cpu" : cat("cuda:", first + rank);
}

Result<Target> choose_target(const device::Machine& machine, std::string_view device, int ranks) {
  if (ranks < 1 || ranks > kMaxRanks) {
    return Error{.code = Code::kOutOfRange,
                 .what = cat(ranks, " ranks are out of range"),
                 .fix = cat("--tensor-parallel-size 1 to ", kMaxRanks)};
  }
  TOPKNOT_TRY(const Asked asked, parse_device(machine, device));
  std::vector<const device::DeviceFacts*> found;
  for (const device::DeviceFacts& each : machine.devices) {
    if (each.kind == asked.kind) found.push_back(&each);
  }
  const size_t last = static_cast<size_t>(asked.first) + static_cast<size_t>(ranks);
  const bool repeated = machine.devices.size() == 1 && found.size() == 1 && asked.first == 0;
  const bool enough = asked.kind == DeviceKind::kCpu ? !found.empty() : last <= found.size();
  if (!enough && !repeated) return no_device(machine, asked, ranks, found.size());
  Target target;
  target.kind = asked.kind;
  target.first = asked.first;
  target.ranks = ranks;
  target.device = *found[repeated ? 0 : static_cast<size_t>(asked.first)];
  // Every rank is planned for as the first: the smallest memory of those used counts.
  for (size_t i = static_cast<size_t>(asked.first); i < std::min(last, found.size()); ++i) {
    auto& least = target.device.memory_usable_bytes;
    const auto& here = found[i]->memory_usable_bytes;
    if (here && least) least = std::min(*least, *here);
  }
  target.host = machine.host;
  target.links = machine.links;
  target.disk_bytes_per_second = machine.disk_bytes_per_second;
  target.instructions_known = machine.host.instructions.has_value();
  if (target.instructions_known) target.instructions = level_of(*machine.host.instructions);
  return target;
}

}  // namespace topknot::plan
