#include "doctor/report.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "topknot/version.h"

namespace topknot::doctor {
namespace {

// What a string of the system may hold, as JSON takes it.
std::string safe(const std::string& text) { return to_valid_utf8(text); }

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json error_json(const Error& error) {
  return {{"code", code_name(error.code)}, {"what", safe(error.what)}, {"why", safe(error.why)}};
}

// null: not measured; {"error": ...}: could not be.
template <class T, class ToJson>
Json measured_json(const Measured<T>& measured, const ToJson& to_json) {
  if (!measured) return nullptr;
  if (!*measured) return {{"error", error_json(measured->error())}};
  return to_json(**measured);
}

Json build_json() {
  const BuildInfo& build = build_info();
  return {{"version", build.version},
          {"commit", build.commit},
          {"compiler", build.compiler},
          {"build_type", build.build_type},
          {"cuda_architectures", build.cuda_architectures}};
}

Json system_json(const device::SystemFacts& system) {
  return {{"os", safe(system.os)},
          {"kernel", safe(system.kernel)},
          {"architecture", system.architecture},
          {"virtual_machine", system.virtual_machine},
          {"container", system.container},
          {"transparent_huge_pages", safe(system.huge_pages)},
          {"address_space_limit_bytes", or_null(system.address_space_limit)},
          {"locked_memory_limit_bytes", or_null(system.locked_memory_limit)}};
}

Json processor_json(const Findings& found) {
  const device::HostFacts& host = found.host;
  Json caches = Json::array();
  for (const device::Cache& each : host.caches) {
    caches.push_back({{"level", each.level},
                      {"type", safe(each.type)},
                      {"bytes", each.bytes},
                      {"line_bytes", each.line_bytes}});
  }
  Json nodes = Json::array();
  for (const device::NumaNode& each : host.numa_nodes) {
    nodes.push_back({{"index", each.index},
                     {"memory_bytes", each.memory_bytes},
                     {"processors", safe(each.cpus)}});
  }
  return {{"name", safe(host.cpu_name)},
          {"sockets", host.sockets},
          {"physical_cores", found.system.physical_cores},
          {"processors", found.system.processors},
          {"usable_processors", host.cores},
          {"quota", or_null(found.system.processor_quota)},
          {"governor", safe(found.system.governor)},
          {"instructions", device::feature_names(host.features)},
          {"caches", std::move(caches)},
          {"last_level_cache_bytes", found.system.last_level_cache_bytes},
          {"numa_nodes", std::move(nodes)}};
}

Json kernels_json(const std::vector<KernelSet>& sets) {
  Json out = Json::array();
  for (const KernelSet& each : sets) {
    out.push_back({{"name", each.name}, {"runs", each.runs}, {"missing", each.missing}});
  }
  return out;
}

Json gpu_json(const Gpu& gpu) {
  const device::CudaDevice& facts = gpu.facts;
  return {
      {"index", facts.index},
      {"name", safe(facts.name)},
      {"sm", facts.sm},
      {"sm_count", facts.sm_count},
      {"memory_bytes", facts.memory_total_bytes},
      {"memory_free_bytes", facts.memory_free_bytes},
      {"memory_bytes_per_second_by_clock", facts.memory_bytes_per_second},
      {"shared_memory_per_block_bytes", facts.shared_memory_per_block},
      {"shared_memory_per_sm_bytes", facts.shared_memory_per_sm},
      {"l2_bytes", facts.l2_cache_bytes},
      {"pci_bus_id", safe(facts.pci_bus_id)},
      {"pcie",
       {{"width", gpu.link.width},
        {"max_width", gpu.link.max_width},
        {"speed", safe(gpu.link.speed)},
        {"max_speed", safe(gpu.link.max_speed)}}},
      {"probe", gpu.probe_error ? Json{{"passed", false}, {"error", error_json(*gpu.probe_error)}}
                                : Json{{"passed", true}}},
      {"measured", measured_json(gpu.bandwidth, [](const device::CudaBandwidth& rates) {
         return Json{{"read_bytes_per_second", rates.read},
                     {"host_to_device_bytes_per_second", rates.host_to_device},
                     {"device_to_host_bytes_per_second", rates.device_to_host}};
       })}};
}

Json cuda_json(const Findings& found) {
  Json gpus = Json::array();
  for (const Gpu& each : found.gpus) gpus.push_back(gpu_json(each));
  return {{"built", found.cuda.built},
          {"runtime_version", found.cuda.runtime_version},
          {"driver_version", found.cuda.driver_version},
          {"kernel_module", safe(found.system.nvidia_driver)},
          {"on_pci_bus", found.system.nvidia_gpus},
          {"problem", safe(found.cuda.problem)},
          {"devices", std::move(gpus)},
          {"pairs", measured_json(found.peers, [](const std::vector<device::CudaPeer>& peers) {
             Json out = Json::array();
             for (const device::CudaPeer& each : peers) {
               out.push_back({{"from", each.from},
                              {"to", each.to},
                              {"direct", each.direct},
                              {"bytes_per_second", each.bytes_per_second}});
             }
             return out;
           })}};
}

Json read_json(const Measured<device::ReadBandwidth>& measured) {
  return measured_json(measured, [](const device::ReadBandwidth& read) {
    return Json{{"bytes_per_second", read.bytes_per_second},
                {"threads", read.threads},
                {"bytes", read.bytes},
                {"rounds", read.rounds}};
  });
}

Json disk_json(const std::optional<device::FileReadRate>& rate) {
  if (!rate) return nullptr;
  return {{"bytes_per_second", rate->bytes_per_second()},
          {"bytes", rate->bytes},
          {"past_page_cache", rate->direct},
          {"cached_share", rate->cached_share}};
}

Json rates_json(const Findings& found) {
  Json products = Json::array();
  for (const ProductRates& each : found.products) {
    products.push_back({{"kernels", each.kernels},
                        {"one_thread_operations_per_second", each.one_thread},
                        {"operations_per_second", each.all_threads},
                        {"threads", each.threads}});
  }
  Json decoding = Json::array();
  for (const DecodeRate& each : found.decoding) {
    decoding.push_back({{"kernels", each.kernels},
                        {"type", each.type},
                        {"bytes_per_second", each.bytes_per_second}});
  }
  return {{"memory",
           {{"one_thread", read_json(found.memory.one_thread)},
            {"all_threads", read_json(found.memory.all_threads)},
            {"own_node", read_json(found.memory.own_node)},
            {"other_node", read_json(found.memory.other_node)}}},
          {"products", std::move(products)},
          {"decoding", std::move(decoding)},
          {"disk", disk_json(found.disk)}};
}

Json probes_json(const std::vector<attention::ProbeResult>& probes) {
  Json out = Json::array();
  for (const attention::ProbeResult& each : probes) {
    const bool finite = std::isfinite(each.largest_difference);
    out.push_back({{"backend", each.backend},
                   {"kernels", each.kernels},
                   {"selection", each.selection},
                   {"refusals", each.refusals},
                   {"problem", safe(each.problem)},
                   {"largest_difference", finite ? Json(each.largest_difference) : Json(nullptr)},
                   {"limit", each.limit},
                   {"passed", each.passed()}});
  }
  return out;
}

Json benchmark_json(const Measured<Benchmark>& measured) {
  return measured_json(measured, [](const Benchmark& run) {
    return Json{{"model_bytes", run.model_bytes},
                {"layers", run.layers},
                {"attention_backend", run.attention_backend},
                {"kernels", run.kernels},
                {"sparse", run.sparse},
                {"threads", run.threads},
                {"prompt_tokens", run.prompt_tokens},
                {"prompt_tokens_per_second", run.prompt_rate()},
                {"tokens", run.tokens},
                {"tokens_per_second", run.rate()},
                {"bytes_per_token", run.bytes_per_token},
                {"bytes_per_second", run.bytes_per_second()},
                {"least_seconds_per_token", or_null(run.least_token_seconds)}};
  });
}

Json checks_json(const std::vector<Check>& checks) {
  Json out = Json::array();
  for (const Check& each : checks) {
    out.push_back({{"name", each.name},
                   {"verdict", verdict_name(each.verdict)},
                   {"text", safe(each.text)},
                   {"remedy", safe(each.remedy)}});
  }
  return out;
}

// "AMD EPYC 9654 with 2 x NVIDIA GeForce RTX 3090".
std::string machine_name(const Findings& found) {
  std::string out = found.host.cpu_name;
  for (size_t i = 0; i < found.gpus.size();) {
    const std::string& name = found.gpus[i].facts.name;
    size_t end = i;
    while (end < found.gpus.size() && found.gpus[end].facts.name == name) ++end;
    out += cat(i == 0 ? " with " : ", ", end - i > 1 ? cat(end - i, " x ") : std::string(), name);
    i = end;
  }
  return safe(out);
}

class MachineMaker {
 public:
  explicit MachineMaker(const Findings& found)
      : found_(found),
        reported_(cat("reported by the system to topknot doctor on ", found.date)),
        measured_(cat("measured by topknot doctor on ", found.date)),
        machine_(device::machine_of(found.host, found.cuda)) {}

  device::Machine make() {
    machine_.name = machine_name(found_);
    machine_.as_of = found_.date.substr(0, 7);
    machine_.note = cat("A report of topknot ", build_info().version, " (", build_info().commit,
                        "); rates are what was reached, not peaks.");
    add_source("host", reported_);
    add_host_rates();
    add_gpu_rates();
    add_links();
    add_disk();
    add_device_sources();
    return std::move(machine_);
  }

 private:
  void add_source(std::string key, std::string source) {
    machine_.sources.emplace_back(std::move(key), std::move(source));
  }

  void add_host_rates() {
    device::DeviceFacts& cpu = machine_.devices.back();
    if (const auto& all = found_.memory.all_threads; all && *all) {
      machine_.host.memory_bytes_per_second = (*all)->bytes_per_second;
      add_source("host.memory_bytes_per_second", cat(measured_, ", ", (*all)->threads, " threads"));
    }
    if (!found_.products.empty()) {
      const ProductRates& best = found_.products.front();
      machine_.host.operations_per_second.fp32 = best.all_threads;
      add_source("host.operations_per_second",
                 cat(measured_, ", ", best.kernels, ", ", best.threads, " threads"));
    }
    cpu.memory_bytes_per_second = machine_.host.memory_bytes_per_second;
    cpu.operations_per_second = machine_.host.operations_per_second;
  }

  void add_gpu_rates() {
    for (size_t i = 0; i < found_.gpus.size(); ++i) {
      const auto& rates = found_.gpus[i].bandwidth;
      if (rates && *rates) machine_.devices[i].memory_bytes_per_second = (*rates)->read;
    }
  }

  // The slowest of them: a plan has one number for all.
  void add_links() {
    std::optional<uint64_t> host;
    for (const Gpu& each : found_.gpus) {
      if (!each.bandwidth || !*each.bandwidth) continue;
      const uint64_t rate = (*each.bandwidth)->host_to_device;
      host = std::min(host.value_or(rate), rate);
    }
    machine_.links.host_to_device_bytes_per_second = host;
    if (found_.peers && *found_.peers) {
      std::optional<uint64_t> pairs;
      for (const device::CudaPeer& each : **found_.peers) {
        pairs = std::min(pairs.value_or(each.bytes_per_second), each.bytes_per_second);
      }
      machine_.links.between_devices_bytes_per_second = pairs;
    }
    if (machine_.links != device::MachineLinks()) add_source("links", measured_);
  }

  // Only where it was the disk that was measured, and enough of it.
  void add_disk() {
    if (!found_.disk || !found_.disk->tells_the_disk()) return;
    machine_.disk_bytes_per_second = found_.disk->bytes_per_second();
    add_source("disk_bytes_per_second", measured_);
  }

  // Equal neighbours are one entry of the file, so its numbers run behind.
  void add_device_sources() {
    size_t index = 0;
    for (size_t i = 0; i < found_.gpus.size(); ++i) {
      if (i > 0 && machine_.devices[i] == machine_.devices[i - 1]) continue;
      if (i > 0) ++index;
      add_source(cat("devices[", index, "]"), reported_);
      const auto& rates = found_.gpus[i].bandwidth;
      if (rates && *rates)
        add_source(cat("devices[", index, "].memory_bytes_per_second"), measured_);
    }
  }

  const Findings& found_;
  std::string reported_, measured_;
  device::Machine machine_;
};

}  // namespace

device::Machine report_machine(const Findings& found) { return MachineMaker(found).make(); }

Json report_json(const Findings& found, const std::vector<Check>& checks) {
  const device::MemoryFacts& memory = found.host.memory;
  return {{"schema_version", kReportVersion},
          {"program", "topknot doctor"},
          {"date", found.date},
          {"quick", found.quick},
          {"broken", anything_broken(checks)},
          {"build", build_json()},
          {"system", system_json(found.system)},
          {"processor", processor_json(found)},
          {"memory",
           {{"bytes", memory.total_bytes},
            {"available_bytes", memory.available_bytes},
            {"limited_by_cgroup", memory.limited_by_cgroup}}},
          {"kernels", kernels_json(found.kernels)},
          {"cuda", cuda_json(found)},
          {"measured", rates_json(found)},
          {"probes", probes_json(found.probes)},
          {"benchmark", benchmark_json(found.benchmark)},
          {"checks", checks_json(checks)},
          {"device", Json::parse(device::machine_to_json(report_machine(found)))}};
}

}  // namespace topknot::doctor
