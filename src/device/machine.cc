#include "device/machine.h"

#include "base/data_files.h"
#include "base/json_reader.h"
#include "base/mapped_file.h"
#include "base/strings.h"
#include "base/try.h"

namespace topknot::device {
namespace {

constexpr std::string_view kFolder = "devices";

// The facts of a running machine say zero for what they could not find out.
template <class To, class From>
std::optional<To> unless_zero(From value) {
  if (value <= 0) return std::nullopt;
  return static_cast<To>(value);
}

MachineHost host_of(const HostFacts& facts) {
  MachineHost host;
  if (!facts.cpu_name.empty() && facts.cpu_name != "unknown") host.name = facts.cpu_name;
  host.sockets = unless_zero<int>(facts.sockets);
  host.numa_nodes = unless_zero<int>(facts.numa_nodes.size());
  host.cores = unless_zero<int>(facts.cores);
  host.instructions = feature_names(facts.features);
  host.memory_bytes = unless_zero<uint64_t>(facts.memory.total_bytes);
  host.memory_usable_bytes = unless_zero<uint64_t>(facts.memory.available_bytes);
  return host;
}

DeviceFacts device_of(const CudaDevice& facts) {
  DeviceFacts device;
  device.kind = DeviceKind::kCuda;
  device.name = facts.name.empty() ? cat("cuda:", facts.index) : facts.name;
  device.sm = unless_zero<int>(facts.sm);
  device.sm_count = unless_zero<int>(facts.sm_count);
  device.shared_memory_per_block_bytes = unless_zero<uint64_t>(facts.shared_memory_per_block);
  device.l2_bytes = unless_zero<uint64_t>(facts.l2_cache_bytes);
  device.memory_bytes = unless_zero<uint64_t>(facts.memory_total_bytes);
  device.memory_usable_bytes = unless_zero<uint64_t>(facts.memory_free_bytes);
  device.memory_bytes_per_second = unless_zero<uint64_t>(facts.memory_bytes_per_second);
  return device;
}

}  // namespace

std::string_view link_kind_name(LinkKind kind) {
  switch (kind) {
    case LinkKind::kPcie: return "pcie";
    case LinkKind::kNvlink: return "nvlink";
    case LinkKind::kNetwork: return "network";
  }
  return "unknown";
}

Machine machine_of(const HostFacts& host, const CudaFacts& cuda) {
  Machine machine;
  machine.name = "this machine";
  machine.host = host_of(host);
  for (const CudaDevice& facts : cuda.devices) machine.devices.push_back(device_of(facts));
  DeviceFacts cpu;
  cpu.kind = DeviceKind::kCpu;
  cpu.name = machine.host.name.value_or("cpu");
  cpu.memory_bytes = machine.host.memory_bytes;
  cpu.memory_usable_bytes = machine.host.memory_usable_bytes;
  cpu.shares_host_memory = true;
  machine.devices.push_back(std::move(cpu));
  return machine;
}

Machine this_machine() { return machine_of(host_facts(), cuda_facts()); }

std::vector<std::string> machine_names() { return data_names(kFolder); }

Result<std::string> find_machine_file(std::string_view name_or_path) {
  return find_data_file(kFolder, name_or_path, "machine");
}

Result<Machine> read_machine(std::string_view name_or_path) {
  TOPKNOT_TRY(const std::string path, find_machine_file(name_or_path));
  TOPKNOT_TRY(const std::string text, read_text_file(path, kMaxJsonFileBytes));
  return parse_machine(text, path);
}

Result<Machine> with_device_count(Machine machine, int count) {
  if (count < 1 || static_cast<uint64_t>(count) > kMaxDevices) {
    return Error{.code = Code::kInvalidArgument,
                 .what = cat("a machine cannot have ", count, " devices"),
                 .why = cat("needs 1 to ", kMaxDevices),
                 .fix = "give another number of ranks"};
  }
  const auto wanted = static_cast<size_t>(count);
  if (machine.devices.size() == wanted) return machine;
  if (machine.devices.size() != 1) {
    return Error{.code = Code::kUnsupported,
                 .what = cat(machine.name, " cannot be asked for ", count, " devices"),
                 .why = cat("the machine has ", machine.devices.size(),
                            " devices; only one device may be repeated"),
                 .fix = cat("ask for ", machine.devices.size(), ", or describe the machine meant")};
  }
  const DeviceFacts device = machine.devices.front();
  machine.devices.assign(wanted, device);
  return machine;
}

std::string_view source_of(const Machine& machine, std::string_view key) {
  std::string_view best;
  size_t best_length = 0;
  for (const auto& [place, source] : machine.sources) {
    const bool above = key.substr(0, place.size()) == place &&
                       (key.size() == place.size() || key[place.size()] == '.');
    if (!above || place.size() < best_length) continue;
    best = source;
    best_length = place.size();
  }
  return best;
}

}  // namespace topknot::device
