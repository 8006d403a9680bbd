// Machine files: reading, with every problem at once, and writing. Schema: docs/devices/README.md.
#include <array>

#include "base/json_reader.h"
#include "base/strings.h"
#include "base/try.h"
#include "device/machine.h"

namespace topknot::device {
namespace {

constexpr uint64_t kMaxCount = 1 << 20;  // cores, multiprocessors, sockets
constexpr std::array<LinkKind, 3> kLinkKinds = {LinkKind::kPcie, LinkKind::kNvlink,
                                                LinkKind::kNetwork};

std::optional<int> read_int(JsonObject* from, const char* key, uint64_t low, uint64_t high) {
  const auto value = from->number(key, low, high);
  if (!value) return std::nullopt;
  return static_cast<int>(*value);
}

std::optional<uint64_t> read_bytes(JsonObject* from, const char* key) {
  return from->number(key, 1, kMaxMachineBytes);
}

std::optional<uint64_t> read_rate(JsonObject* from, const char* key) {
  return from->number(key, 1, kMaxBytesPerSecond);
}

OperationRates read_operations(JsonObject* from) {
  OperationRates rates;
  auto object = from->object("operations_per_second");
  if (!object) return rates;
  rates.fp32 = object->number("fp32", 0, kMaxOperationsPerSecond);
  rates.bf16 = object->number("bf16", 0, kMaxOperationsPerSecond);
  rates.fp8 = object->number("fp8", 0, kMaxOperationsPerSecond);
  rates.int8 = object->number("int8", 0, kMaxOperationsPerSecond);
  object->finish();
  return rates;
}

void check_usable(const std::optional<uint64_t>& usable, const std::optional<uint64_t>& all,
                  const JsonObject& from) {
  if (!usable || !all || *usable <= *all) return;
  from.problems().add(from.path_of("memory_usable_bytes"), cat("at most memory_bytes, ", *all),
                      cat(*usable));
}

MachineHost read_host(JsonObject* from) {
  MachineHost host;
  host.name = from->text("name");
  host.sockets = read_int(from, "sockets", 1, kMaxCount);
  host.numa_nodes = read_int(from, "numa_nodes", 1, kMaxCount);
  host.cores = read_int(from, "cores", 1, kMaxCount);
  if (from->any("instructions") != nullptr) host.instructions = from->texts("instructions");
  host.memory_bytes = read_bytes(from, "memory_bytes");
  host.memory_usable_bytes = read_bytes(from, "memory_usable_bytes");
  host.memory_bytes_per_second = read_rate(from, "memory_bytes_per_second");
  host.operations_per_second = read_operations(from);
  check_usable(host.memory_usable_bytes, host.memory_bytes, *from);
  from->finish();
  return host;
}

std::optional<DeviceKind> read_kind(JsonObject* from) {
  const auto kind = from->text("kind", Need::kRequired);
  if (!kind) return std::nullopt;
  if (*kind == "cpu") return DeviceKind::kCpu;
  if (*kind == "cuda") return DeviceKind::kCuda;
  from->problems().add(from->path_of("kind"), "cpu or cuda", printable(*kind));
  return std::nullopt;
}

void read_cuda(JsonObject* from, DeviceFacts* device) {
  device->sm = read_int(from, "sm", 10, 999);
  device->sm_count = read_int(from, "sm_count", 1, kMaxCount);
  device->shared_memory_per_block_bytes = read_bytes(from, "shared_memory_per_block_bytes");
  device->l2_bytes = read_bytes(from, "l2_bytes");
  device->memory_bytes = read_bytes(from, "memory_bytes");
  device->memory_usable_bytes = read_bytes(from, "memory_usable_bytes");
  device->memory_bytes_per_second = read_rate(from, "memory_bytes_per_second");
  device->shares_host_memory = from->boolean("shares_host_memory");
  device->operations_per_second = read_operations(from);
  check_usable(device->memory_usable_bytes, device->memory_bytes, *from);
}

// One number, one place: a CPU's are those of the host.
void take_from_host(const MachineHost& host, DeviceFacts* device) {
  device->memory_bytes = host.memory_bytes;
  device->memory_usable_bytes = host.memory_usable_bytes;
  device->memory_bytes_per_second = host.memory_bytes_per_second;
  device->shares_host_memory = true;
  device->operations_per_second = host.operations_per_second;
}

void read_devices(JsonObject* top, Machine* machine) {
  for (JsonObject& from : top->objects("devices", Need::kRequired)) {
    DeviceFacts device;
    const auto kind = read_kind(&from);
    device.name = from.text("name", Need::kRequired).value_or("");
    const uint64_t count = from.number("count", 1, kMaxDevices).value_or(1);
    if (!kind) continue;  // which keys are known depends on it
    device.kind = *kind;
    if (device.kind == DeviceKind::kCuda) {
      read_cuda(&from, &device);
    } else {
      take_from_host(machine->host, &device);
    }
    from.finish();
    if (machine->devices.size() + count > kMaxDevices) {
      top->problems().add(top->path_of("devices"), cat("at most ", kMaxDevices, " in all"), "more");
      return;
    }
    machine->devices.insert(machine->devices.end(), count, device);
  }
}

std::optional<LinkKind> read_link_kind(JsonObject* from) {
  const auto name = from->text("between_devices");
  if (!name) return std::nullopt;
  for (const LinkKind kind : kLinkKinds) {
    if (link_kind_name(kind) == *name) return kind;
  }
  from->problems().add(from->path_of("between_devices"), "pcie, nvlink or network",
                       printable(*name));
  return std::nullopt;
}

MachineLinks read_links(JsonObject* from) {
  MachineLinks links;
  links.between_devices = read_link_kind(from);
  links.between_devices_bytes_per_second = read_rate(from, "between_devices_bytes_per_second");
  links.host_to_device_bytes_per_second = read_rate(from, "host_to_device_bytes_per_second");
  from->finish();
  return links;
}

template <class T>
void put(Json* to, const char* key, const std::optional<T>& value) {
  if (value) (*to)[key] = *value;
}

void put_object(Json* to, const char* key, Json value) {
  if (!value.empty()) (*to)[key] = std::move(value);
}

Json operations_json(const OperationRates& rates) {
  Json out = Json::object();
  put(&out, "fp32", rates.fp32);
  put(&out, "bf16", rates.bf16);
  put(&out, "fp8", rates.fp8);
  put(&out, "int8", rates.int8);
  return out;
}

Json host_json(const MachineHost& host) {
  Json out = Json::object();
  put(&out, "name", host.name);
  put(&out, "sockets", host.sockets);
  put(&out, "numa_nodes", host.numa_nodes);
  put(&out, "cores", host.cores);
  put(&out, "instructions", host.instructions);
  put(&out, "memory_bytes", host.memory_bytes);
  put(&out, "memory_usable_bytes", host.memory_usable_bytes);
  put(&out, "memory_bytes_per_second", host.memory_bytes_per_second);
  put_object(&out, "operations_per_second", operations_json(host.operations_per_second));
  return out;
}

Json device_json(const DeviceFacts& device, size_t count) {
  const bool cuda = device.kind == DeviceKind::kCuda;
  Json out = {{"kind", cuda ? "cuda" : "cpu"}, {"name", device.name}};
  if (count > 1) out["count"] = count;
  if (!cuda) return out;
  put(&out, "sm", device.sm);
  put(&out, "sm_count", device.sm_count);
  put(&out, "shared_memory_per_block_bytes", device.shared_memory_per_block_bytes);
  put(&out, "l2_bytes", device.l2_bytes);
  put(&out, "memory_bytes", device.memory_bytes);
  put(&out, "memory_usable_bytes", device.memory_usable_bytes);
  put(&out, "memory_bytes_per_second", device.memory_bytes_per_second);
  put(&out, "shares_host_memory", device.shares_host_memory);
  put_object(&out, "operations_per_second", operations_json(device.operations_per_second));
  return out;
}

Json devices_json(const std::vector<DeviceFacts>& devices) {
  Json out = Json::array();
  for (size_t i = 0; i < devices.size();) {
    size_t end = i + 1;
    while (end < devices.size() && devices[end] == devices[i]) ++end;
    out.push_back(device_json(devices[i], end - i));
    i = end;
  }
  return out;
}

Json links_json(const MachineLinks& links) {
  Json out = Json::object();
  if (links.between_devices) out["between_devices"] = link_kind_name(*links.between_devices);
  put(&out, "between_devices_bytes_per_second", links.between_devices_bytes_per_second);
  put(&out, "host_to_device_bytes_per_second", links.host_to_device_bytes_per_second);
  return out;
}

}  // namespace

Result<Machine> parse_machine(const std::string& text, std::string_view where) {
  TOPKNOT_TRY(const Json json, parse_json(text, where));
  JsonProblems problems;
  const bool is_report = json.is_object() && json.contains("device") && !json.contains("devices");
  if (is_report &&
      json.value("schema_version", Json(kReportSchemaVersion)) != Json(kReportSchemaVersion)) {
    problems.add("schema_version", cat(kReportSchemaVersion),
                 printable(json["schema_version"].dump(), 40));
  }
  JsonObject top(is_report ? json.at("device") : json, is_report ? "device" : "", &problems);
  Machine machine;
  machine.name = top.text("name", Need::kRequired).value_or("");
  machine.as_of = top.text("as_of");
  machine.note = top.text("note");
  if (auto host = top.object("host")) machine.host = read_host(&*host);
  read_devices(&top, &machine);
  if (auto links = top.object("links")) machine.links = read_links(&*links);
  machine.disk_bytes_per_second = read_rate(&top, "disk_bytes_per_second");
  if (auto sources = top.object("sources")) machine.sources = sources->text_pairs();
  top.finish();
  if (problems.empty() && machine.devices.empty()) {
    problems.add(top.path_of("devices"), "at least one device", "none");
  }
  if (problems.empty()) return machine;
  Error error = problems.to_error("cannot read the facts of a machine", std::string(where));
  error.fix += "; docs/devices/README.md describes each";
  return error;
}

std::string machine_to_json(const Machine& machine) {
  Json out = {{"name", machine.name}};
  put(&out, "as_of", machine.as_of);
  put(&out, "note", machine.note);
  put_object(&out, "host", host_json(machine.host));
  out["devices"] = devices_json(machine.devices);
  put_object(&out, "links", links_json(machine.links));
  put(&out, "disk_bytes_per_second", machine.disk_bytes_per_second);
  Json sources = Json::object();
  for (const auto& [key, source] : machine.sources) sources[key] = source;
  put_object(&out, "sources", std::move(sources));
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace topknot::device
