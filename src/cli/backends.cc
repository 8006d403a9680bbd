// topknot backends: what this build can compute with, its limits, and a proof that it computes.
#include <algorithm>
#include <memory>

#include "attention/libraries.h"
#include "attention/probe.h"
#include "base/strings.h"
#include "base/thread_pool.h"
#include "cli/commands.h"
#include "cli/device_lists.h"
#include "cli/device_options.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "device/cpu/host_facts.h"
#include "device/cuda/cuda_facts.h"
#include "ops/cpu/kernels.h"

namespace topknot::cli {
namespace {

struct BackendsOptions {
  DeviceOptions device;
  std::vector<std::string> libraries;
  bool probe = false;
  bool json = false;
};

Json rules_json(const attention::BackendEntry& entry) {
  Json rules = Json::array();
  for (const capability::Rule& rule : entry.rules) {
    rules.push_back({{"fact", capability::fact_name(rule.fact)},
                     {"accepts", capability::accepts_string(rule.fact, rule.accepts)},
                     {"because", rule.because},
                     {"remedy", rule.remedy}});
  }
  return rules;
}

Json attention_json(const attention::BackendList& backends) {
  Json list = Json::array();
  for (const attention::BackendEntry& entry : backends.entries()) {
    Json json = {{"name", entry.name}, {"built", entry.backend != nullptr}};
    if (entry.backend == nullptr) {
      json["because"] = entry.absent.front().because;
      json["remedy"] = entry.absent.front().remedy;
    } else {
      json["description"] = entry.description;
      json["library"] = entry.library.empty() ? Json() : json_text(entry.library);
      json["rules"] = rules_json(entry);
    }
    list.push_back(std::move(json));
  }
  return list;
}

Json kernels_json() {
  Json list = Json::array();
  for (const std::string_view name : ops::built_kernels()) {
    list.push_back({{"name", name}, {"available", ops::find_kernels(name) != nullptr}});
  }
  return list;
}

Json devices_json() {
  const device::HostFacts host = device::host_facts();
  Json cpu = {{"name", json_text(host.cpu_name)},
              {"cores", host.cores},
              {"features", device::feature_names(host.features)},
              {"memory_bytes", host.memory.total_bytes},
              {"memory_available_bytes", host.memory.available_bytes}};
  const device::CudaFacts facts = device::cuda_facts();
  Json devices = Json::array();
  for (const device::CudaDevice& gpu : facts.devices) {
    devices.push_back({{"index", gpu.index},
                       {"name", json_text(gpu.name)},
                       {"sm", gpu.sm},
                       {"memory_bytes", gpu.memory_total_bytes},
                       {"memory_free_bytes", gpu.memory_free_bytes}});
  }
  return {{"cpu", std::move(cpu)},
          {"cuda",
           {{"built", facts.built},
            {"devices", std::move(devices)},
            {"problem", json_text(facts.problem)},
            {"remedy", json_text(facts.remedy)}}}};
}

Json probe_json(const attention::ProbeResult& result) {
  return {{"backend", result.backend},
          {"kernels", result.kernels},
          {"selection", result.selection},
          {"refusals", result.refusals},
          {"problem", json_text(result.problem)},
          {"largest_difference", result.largest_difference},
          {"limit", result.limit},
          {"passed", result.passed()}};
}

std::string text(const Json& value) { return value.get<std::string>(); }

std::string attention_text(const Json& backends) {
  std::string out = "attention backends, best first\n";
  for (const Json& backend : backends) {
    if (!backend["built"].get<bool>()) {
      out += fmt::format("  {:<15} not there: {}; {}\n", text(backend["name"]),
                         text(backend["because"]), text(backend["remedy"]));
      continue;
    }
    out += fmt::format("  {:<15} {}\n", text(backend["name"]), text(backend["description"]));
    if (!backend["library"].is_null()) {
      out += fmt::format("  {:<15}   library {}, which states its limits in code\n", "",
                         text(backend["library"]));
    }
    for (const Json& rule : backend["rules"]) {
      out += fmt::format("  {:<15}   {}: {} ({})\n", "", text(rule["fact"]), text(rule["accepts"]),
                         text(rule["because"]));
    }
  }
  return out;
}

std::string devices_text(const Json& devices) {
  const Json& cpu = devices["cpu"];
  std::string features;
  for (const Json& name : cpu["features"]) features += cat(features.empty() ? "" : " ", text(name));
  std::string out =
      cat("devices\n  cpu     ", text(cpu["name"]), ", ", cpu["cores"].dump(), " cores, ",
          human_bytes(cpu["memory_available_bytes"].get<uint64_t>()), " of ",
          human_bytes(cpu["memory_bytes"].get<uint64_t>()), " free\n          ", features, "\n");
  const Json& cuda = devices["cuda"];
  for (const Json& gpu : cuda["devices"]) {
    out += cat("  cuda:", gpu["index"].dump(), "  ", text(gpu["name"]), ", sm_", gpu["sm"].dump(),
               ", ", human_bytes(gpu["memory_free_bytes"].get<uint64_t>()), " of ",
               human_bytes(gpu["memory_bytes"].get<uint64_t>()), " free\n");
  }
  if (cuda["devices"].empty()) {
    out += cat("  cuda    none: ", text(cuda["problem"]), "; ", text(cuda["remedy"]), "\n");
  }
  return out;
}

std::string to_text(const Json& json) {
  std::string out = attention_text(json["attention"]);
  out += "kernels, best first\n";
  for (const Json& kernels : json["kernels"]) {
    out += fmt::format("  {:<15} {}\n", text(kernels["name"]),
                       kernels["available"].get<bool>() ? "runs here" : "this processor lacks it");
  }
  out += devices_text(json["devices"]);
  if (!json.contains("probe")) return out;
  out += "probe: one tile against cpu_reference\n";
  for (const Json& result : json["probe"]) {
    out += fmt::format("  {:<15} {:<9} {:<7} ", text(result["backend"]), text(result["kernels"]),
                       text(result["selection"]));
    if (!result["refusals"].empty()) {
      out += cat("FAILED  refused: ", text(result["refusals"][0]), "\n");
      continue;
    }
    if (const std::string problem = text(result["problem"]); !problem.empty()) {
      out += cat("FAILED  ", problem, "\n");
      continue;
    }
    out += fmt::format("{}  largest difference {:.1e}, limit {:.1e}\n",
                       result["passed"].get<bool>() ? "passed" : "FAILED",
                       result["largest_difference"].get<double>(), result["limit"].get<double>());
  }
  return out;
}

int list_backends(const BackendsOptions& o, const attention::BackendList& backends) {
  Json json = {{"attention", attention_json(backends)},
               {"kernels", kernels_json()},
               {"devices", devices_json()}};
  bool passed = true;
  if (o.probe) {
    ThreadPool pool(std::min(available_cores(), 2));  // as many as find a race, not all of a host
    Json results = Json::array();
    for (const attention::ProbeResult& result : attention::probe_all(backends, &pool)) {
      passed = passed && result.passed();
      results.push_back(probe_json(result));
    }
    json["probe"] = std::move(results);
  }
  if (o.json) {
    write_json(json);
  } else {
    write_output(to_text(json));
  }
  if (passed) return 0;
  report(Error{.code = Code::kUnsupported,
               .what = "a backend does not compute what the reference does",
               .why = "see the lines that say FAILED",
               .fix = "use another one with --attention-backend, and report this machine"});
  return kExitFailed;
}

int list_for_device(const BackendsOptions& o, const attention::BackendList& backends) {
  const auto target = device_of(o.device);
  if (!target) return report(target.error());
  const Json json = device_lists_json(*target, backends);
  if (o.json) {
    write_json(json);
  } else {
    write_output(device_lists_text(json));
  }
  return 0;
}

int run(const BackendsOptions& o, bool one_device) {
  const auto backends = attention::backends_with(o.libraries);
  if (!backends) return report(backends.error());
  return one_device ? list_for_device(o, *backends) : list_backends(o, *backends);
}

}  // namespace

void add_backends(CLI::App* program, Action* action) {
  CLI::App* app =
      program->add_subcommand("backends", "List attention backends, kernels and devices");
  const auto o = std::make_shared<BackendsOptions>();
  CLI::Option* probe =
      app->add_flag("--probe", o->probe, "run each backend on a small tile and compare");
  CLI::Option* device =
      app->add_option("--device", o->device.device,
                      "every list of implementations in the order tried on this device, and what "
                      "of it can never be chosen there: cpu, cuda:N, or a machine's name or file");
  CLI::Option* devices = add_devices_option(app, &o->device.devices);
  device->excludes(probe);
  devices->excludes(probe);
  add_library_option(app, &o->libraries);
  add_json_option(app, &o->json);
  app->footer(examples({"topknot backends", "topknot backends --probe",
                        "topknot backends --device rtx-pro-6000", "topknot backends --json"}));
  app->callback([o, action, device, devices] {
    const bool one = device->count() > 0 || devices->count() > 0;
    *action = [o, one] { return run(*o, one); };
  });
}

}  // namespace topknot::cli
