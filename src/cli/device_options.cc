#include "cli/device_options.h"

#include "base/strings.h"
#include "base/try.h"

namespace topknot::cli {
namespace {

bool names_a_machine(std::string_view device) {
  if (device.find('/') != std::string_view::npos || device.ends_with(".json")) return true;
  return !device.empty() && device != "cpu" && !device.starts_with("cuda");
}

}  // namespace

CLI::Option* add_devices_option(CLI::App* app, std::string* devices) {
  return app->add_option("--devices", *devices,
                         "a machine instead of this one: a name of docs/devices, or a file");
}

Result<device::Machine> machine_of(const DeviceOptions& options) {
  if (!options.devices.empty()) return device::read_machine(options.devices);
  if (options.device.starts_with("cuda")) return device::this_machine();
  return device::machine_of(device::host_facts(), {});
}

Result<plan::Target> device_of(DeviceOptions options) {
  if (options.devices.empty() && names_a_machine(options.device)) {
    options.devices = std::move(options.device);
    options.device.clear();
    auto machine = machine_of(options);
    if (!machine && machine.error().code == Code::kNotFound) {
      machine.error().fix = cat("cpu, cuda:N, or a machine: ", machine.error().fix);
    }
    if (!machine) return machine.error();
    return plan::choose_target(*machine, {}, 1);
  }
  TOPKNOT_TRY(const device::Machine machine, machine_of(options));
  return plan::choose_target(machine, options.device, 1);
}

}  // namespace topknot::cli
