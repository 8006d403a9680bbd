// Which devices of a machine a model is spread over.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "capability/facts.h"
#include "device/machine.h"
#include "topknot/error.h"

namespace topknot::plan {

inline constexpr int kMaxRanks = 1024;

struct Target {
  capability::DeviceKind kind = capability::DeviceKind::kCpu;
  int first = 0;               // index among the machine's devices of that kind
  int ranks = 1;               // tensor parallel; each has a device, but a CPU is shared by all
  device::DeviceFacts device;  // of rank 0
  device::MachineHost host;
  device::MachineLinks links;
  capability::InstructionLevel instructions = capability::InstructionLevel::kPortable;
  bool instructions_known = true;
  std::optional<uint64_t> disk_bytes_per_second;

  bool on_host() const { return kind == capability::DeviceKind::kCpu; }
  std::string device_name(int rank) const;  // "cpu", "cuda:3"
};

// `device`: "cpu", "cuda", "cuda:N", or empty for the machine's first. A machine of one device
// stands for as many as are asked for.
Result<Target> choose_target(const device::Machine& machine, std::string_view device, int ranks);

}  // namespace topknot::plan
