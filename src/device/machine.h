// A machine as plain numbers: the one this program runs on, or one described in a file
// (docs/devices/README.md has the schema). A plan reads this and cannot tell which it was.
//
// A number that nobody stated is std::nullopt: never zero, never guessed. What a plan needs and
// does not find is reported as unknown.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/cpu/host_facts.h"
#include "device/cuda/cuda_facts.h"
#include "device/kind.h"
#include "topknot/error.h"

namespace topknot::device {

inline constexpr uint64_t kMaxDevices = 1024;  // of one machine
inline constexpr uint64_t kMaxMachineBytes = uint64_t{1} << 50;
inline constexpr uint64_t kMaxBytesPerSecond = 1'000'000'000'000'000;
inline constexpr uint64_t kMaxOperationsPerSecond = 1'000'000'000'000'000'000;

// Peak operations in a second (a multiply-add is two), dense, accumulated in fp32 (int8: in int32).
// Zero: the device has no such unit; unknown is something else.
struct OperationRates {
  std::optional<uint64_t> fp32, bf16, fp8, int8;
  bool operator==(const OperationRates&) const = default;
};

struct DeviceFacts {
  DeviceKind kind = DeviceKind::kCpu;
  std::string name;
  std::optional<int> sm;  // compute capability, 9.0 is 90; not ordered by ability; CUDA only
  std::optional<int> sm_count;
  std::optional<uint64_t> shared_memory_per_block_bytes;  // opt-in limit
  std::optional<uint64_t> l2_bytes;
  std::optional<uint64_t> memory_bytes;             // as the driver lists the whole of it
  std::optional<uint64_t> memory_usable_bytes;      // what a program can get at most, or now
  std::optional<uint64_t> memory_bytes_per_second;  // peak, reading
  std::optional<bool> shares_host_memory;           // its memory is the host's, counted once
  OperationRates operations_per_second;
  bool operator==(const DeviceFacts&) const = default;
};

struct MachineHost {
  std::optional<std::string> name;  // of the processor
  std::optional<int> sockets;
  std::optional<int> numa_nodes;
  std::optional<int> cores;                              // physical, or those this process may use
  std::optional<std::vector<std::string>> instructions;  // as feature_names() calls them
  std::optional<uint64_t> memory_bytes;
  std::optional<uint64_t> memory_usable_bytes;
  std::optional<uint64_t> memory_bytes_per_second;  // peak, of all sockets together
  OperationRates operations_per_second;             // of all cores together
  bool operator==(const MachineHost&) const = default;
};

enum class LinkKind : uint8_t { kPcie, kNvlink, kNetwork };
std::string_view link_kind_name(LinkKind kind);

// Bytes in a second, one direction.
struct MachineLinks {
  std::optional<LinkKind> between_devices;
  std::optional<uint64_t> between_devices_bytes_per_second;
  std::optional<uint64_t> host_to_device_bytes_per_second;
  bool operator==(const MachineLinks&) const = default;
};

// Of the reports of `topknot doctor`, which hold a machine: grows when a key changes its meaning.
inline constexpr int kReportSchemaVersion = 1;

struct Machine {
  std::string name;
  std::optional<std::string> as_of;  // date of the numbers: "2026-09"
  std::optional<std::string> note;
  MachineHost host;
  std::vector<DeviceFacts> devices;  // at least one; a CPU has its numbers from the host
  MachineLinks links;
  std::optional<uint64_t> disk_bytes_per_second;  // reading
  // Where a number comes from, by its key: "devices[0].memory_bytes", or a key above it.
  std::vector<std::pair<std::string, std::string>> sources;
  bool operator==(const Machine&) const = default;
};

// The text of a machine file, or of a report of `topknot doctor`, whose `device` is one. `where`
// names it in errors: one, with every problem.
Result<Machine> parse_machine(const std::string& text, std::string_view where);
// What parse_machine reads; two spaces of indentation, a newline at the end.
std::string machine_to_json(const Machine& machine);

// A machine file by name ("rtx-pro-6000", installed beside the program) or by path.
Result<std::string> find_machine_file(std::string_view name_or_path);
Result<Machine> read_machine(std::string_view name_or_path);
std::vector<std::string> machine_names();

// The machine this program runs on: every GPU, then the CPU. Unknown stays unknown.
Machine this_machine();
Machine machine_of(const HostFacts& host, const CudaFacts& cuda);  // what this_machine() is made of

// A file of one device stands for any number of them: `count` copies of it, with the links of the
// file. kUnsupported for a machine of several devices that are not `count`.
Result<Machine> with_device_count(Machine machine, int count);

// The source of a number: that of its key, or of the nearest key above; empty if none is stated.
std::string_view source_of(const Machine& machine, std::string_view key);

}  // namespace topknot::device
