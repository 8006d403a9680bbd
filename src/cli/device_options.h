// Which machine, and which of its devices, a command is asked about; declared once.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "device/machine.h"
#include "plan/target.h"
#include "topknot/error.h"

namespace topknot::cli {

struct DeviceOptions {
  std::string devices;  // a machine by name, or a file; empty: this one
  std::string device;   // "cpu", "cuda:N"; empty: the machine's first
};

// --devices, the same words everywhere.
CLI::Option* add_devices_option(CLI::App* app, std::string* devices);

// GPUs of this machine are asked only when one is meant: that makes a context on each of them.
Result<device::Machine> machine_of(const DeviceOptions& options);

// One device. `device` may also be a machine's name or file: its first device is meant.
Result<plan::Target> device_of(DeviceOptions options);

}  // namespace topknot::cli
