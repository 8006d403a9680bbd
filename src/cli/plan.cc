// topknot plan: what would run a model on a machine, what it takes and what it costs, before a byte
// of weights is read.
#include <algorithm>
#include <cmath>
#include <memory>

#include "attention/libraries.h"
#include "base/strings.h"
#include "base/try.h"
#include "cli/catalog_report.h"
#include "cli/commands.h"
#include "cli/device_options.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/plan_report.h"
#include "gguf/model_file.h"

namespace topknot::cli {
namespace {

struct PlanOptions {
  std::string model;
  std::string devices;
  plan::PlanRequest request;
  double disk_gb_per_second = 0;
  std::string explain;
  std::string catalog;
  std::vector<std::string> libraries;
  std::vector<std::string> overrides;
  bool json = false;
};

// What is asked about: a file's headers, and a machine.
struct Opened {
  gguf::ModelFile file;
  model::ModelConfig config;
  model::CheckedTensors tensors;
  device::Machine machine;

  PlannedModel model() const { return {config, file.total_bytes(), machine}; }
};

Result<Opened> open(const PlanOptions& options) {
  std::vector<gguf::Override> overrides;
  for (const std::string& text : options.overrides) {
    TOPKNOT_TRY(gguf::Override parsed, gguf::Override::parse(text));
    overrides.push_back(std::move(parsed));
  }
  TOPKNOT_TRY(device::Machine machine, machine_of({options.devices, options.request.device}));
  TOPKNOT_TRY(gguf::ModelFile file, gguf::ModelFile::open(options.model, overrides));
  TOPKNOT_TRY(model::ModelConfig config, model::read_config(file));
  TOPKNOT_TRY(model::CheckedTensors tensors, model::check_tensors(file, config));
  return Opened{std::move(file), std::move(config), std::move(tensors), std::move(machine)};
}

Status set_disk_rate(double gb_per_second, plan::PlanRequest* request) {
  if (!(gb_per_second >= 0 && gb_per_second < 1e6)) {
    return Error{.code = Code::kOutOfRange,
                 .what = cat("--disk-rate ", gb_per_second, " is out of range"),
                 .fix = "GB of 10^9 bytes in a second, for instance 6.5"};
  }
  constexpr double kGb = 1e9;
  request->disk_bytes_per_second = static_cast<uint64_t>(std::llround(gb_per_second * kGb));
  return {};
}

// Operations by their whole name, or by its beginning: "linear" is every linear product.
std::vector<const plan::Operation*> find_operations(const plan::Plan& plan,
                                                    const std::string& name) {
  std::vector<const plan::Operation*> out;
  for (const plan::Operation& each : plan.operations) {
    if (each.name() == name || each.name().starts_with(name + " ")) out.push_back(&each);
  }
  return out;
}

Error no_operation(const plan::Plan& plan, const std::string& name) {
  std::vector<std::string> names;
  for (const plan::Operation& each : plan.operations) names.push_back(each.name());
  const auto near = nearest(name, names, 1);
  return Error{
      .code = Code::kNotFound,
      .what = cat("the plan has no operation '", printable(name), "'"),
      .why = fmt::format("its operations are: {}", fmt::join(names, ", ")),
      .fix = near.empty() ? "give one of these names" : cat("did you mean '", near[0], "'?")};
}

Result<int> explain(const plan::Plan& plan, const PlanOptions& options) {
  const auto found = find_operations(plan, options.explain);
  if (found.empty()) return no_operation(plan, options.explain);
  Json list = Json::array();
  std::string text;
  bool complete = true;
  for (const plan::Operation* each : found) {
    complete = complete && each->choice.chosen.has_value();
    list.push_back(operation_json(*each));
    text += cat(text.empty() ? "" : "\n", explanation_text(*each));
  }
  if (options.json) {
    write_json({{"operations", std::move(list)}});
  } else {
    write_output(text);
  }
  return complete ? 0 : kExitFailed;
}

Result<int> ask_other_engine(const PlanOptions& options) {
  TOPKNOT_TRY(const capability::Catalog catalog, capability::read_catalog(options.catalog));
  TOPKNOT_TRY(const Opened opened, open(options));
  TOPKNOT_TRY(
      const plan::CatalogAnswer answer,
      plan::ask_catalog(catalog, opened.config, opened.tensors, options.request, opened.machine));
  if (options.json) {
    write_json(catalog_json(catalog, answer, opened.model()));
  } else {
    write_output(catalog_text(catalog, answer, opened.model()));
  }
  return capability::all_chosen(answer.choices) ? 0 : kExitFailed;
}

Result<int> run(PlanOptions options) {
  if (!options.catalog.empty()) return ask_other_engine(options);
  TOPKNOT_TRY(options.request.backends, attention::backends_with(options.libraries));
  TOPKNOT_CHECK_OK(set_disk_rate(options.disk_gb_per_second, &options.request));
  TOPKNOT_TRY(const Opened opened, open(options));
  TOPKNOT_TRY(plan::Plan plan,
              plan::make_plan(opened.config, opened.tensors, options.request, opened.machine));
  plan.notes.insert(plan.notes.begin(), opened.tensors.notes.begin(), opened.tensors.notes.end());
  plan.notes.insert(plan.notes.begin(), opened.config.notes.begin(), opened.config.notes.end());
  if (!options.explain.empty()) return explain(plan, options);
  if (options.json) {
    write_json(plan_json(plan, opened.model()));
  } else {
    write_output(plan_text(plan, opened.model()));
  }
  return plan.complete() && plan.memory.fits() ? 0 : kExitFailed;
}

void add_request_options(CLI::App* command, plan::PlanRequest* request) {
  command->add_option("--device", request->device,
                      "cpu, or cuda:N; without it the machine's first, here the cpu");
  command
      ->add_option("--tensor-parallel-size,--tensor-parallel", request->ranks,
                   "(-tp) devices that share the model")
      ->capture_default_str();
  command
      ->add_option("-c,--ctx-size,--max-model-len", request->context,
                   "tokens of context of each sequence; 0: what fits")
      ->capture_default_str();
  command->add_option("--parallel", request->sequences, "(-np) sequences at once")
      ->capture_default_str();
  command->add_option("-t,--threads", request->threads, "threads of a cpu; 0: every core")
      ->capture_default_str();
  command->add_option("--ubatch-size", request->ubatch, "(-ub) most tokens of one step of prefill")
      ->capture_default_str();
  command->add_option("--dtype", request->dtype, "residual stream: auto, f32, bf16")
      ->capture_default_str();
  command
      ->add_option("--kv-cache-dtype,--cache-type-k", request->kv_cache_dtype,
                   "(-ctk) cache rows: auto, f32, bf16, fp8, q8_0")
      ->capture_default_str();
  command->add_option("--attention-backend", request->attention_backend,
                      "a name of `topknot backends`; refused when it cannot run the model");
  command
      ->add_option("--kernels", request->kernels,
                   "loops of a cpu: auto, avx512, avx2, portable, reference")
      ->capture_default_str();
  command->add_flag("--dense", request->dense,
                    "attend to every key, whatever the indexer would select");
}

}  // namespace

void add_plan(CLI::App* program, Action* action) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command = program->add_subcommand(
      "plan", "Say what would run a model on a machine, what it takes and what it costs");
  add_model_option(command, &options->model)->required();
  add_devices_option(command, &options->devices);
  add_request_options(command, &options->request);
  command->add_option("--disk-rate", options->disk_gb_per_second,
                      "GB/s that the model is read with; 0: the machine's");
  command->add_option("--explain", options->explain,
                      "print the whole reasoning for one operation, for instance \"linear Q4_K\"");
  add_library_option(command, &options->libraries);
  CLI::Option* catalog = command->add_option(
      "--catalog", options->catalog,
      "which of another engine's implementations would run the file, and why not: a name of "
      "docs/catalog, or a file. --attention-backend is then a name of that engine");
  // What no catalogue has a rule about.
  for (const char* name : {"--ctx-size", "--threads", "--ubatch-size", "--kernels", "--disk-rate",
                           "--backend-library", "--explain"}) {
    catalog->excludes(command->get_option(name));
  }
  add_override_option(command, &options->overrides);
  add_json_option(command, &options->json);
  command->footer(
      examples({"topknot plan -m model.gguf", "topknot plan -m model.gguf -c 8192 --json",
                "topknot plan -m model.gguf --devices cpu-12-channel-server",
                "topknot plan -m model.gguf --explain \"attention decode\"",
                "topknot plan -m model.gguf --catalog llama.cpp-2026-08"}));
  command->callback([options, action] {
    *action = [options] {
      const auto code = run(*options);
      return code ? *code : report(code.error());
    };
  });
}

}  // namespace topknot::cli
