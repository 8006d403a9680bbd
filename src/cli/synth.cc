// topknot synth: a GGUF model with random weights, for tests, benchmarks and plans.
#include <memory>

#include "base/mapped_file.h"
#include "base/strings.h"
#include "base/thread_pool.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "synth/presets.h"
#include "synth/synth.h"

namespace topknot::cli {
namespace {

struct SynthOptions {
  std::string like;
  std::string shape_file;
  std::vector<std::string> fields;  // as given, one for each of shape_fields()
  std::vector<CLI::Option*> field_options;
  std::vector<std::string> types;
  std::string max_size;
  uint64_t max_tensors = 0;
  bool metadata_only_first = false;
  bool no_split = false;
  bool dry_run = false;
  bool json = false;
  int threads = 0;
  synth::Request request;
};

bool is_flag(const synth::ShapeField& field) {
  return std::holds_alternative<bool synth::ModelShape::*>(field.member);
}

// The file first, then the options of the command line.
Status apply_fields(const SynthOptions& o, std::string_view json, synth::ModelShape* shape) {
  if (!o.shape_file.empty()) TOPKNOT_CHECK_OK(synth::read_shape(json, o.shape_file, shape));
  for (size_t i = 0; i < o.fields.size(); ++i) {
    const CLI::Option* option = o.field_options[i];
    if (option->count() == 0) continue;
    const synth::ShapeField& field = synth::shape_fields()[i];
    const std::string value = !is_flag(field) ? o.fields[i] : option->as<bool>() ? "true" : "false";
    Status done = synth::set_field(shape, field.name, value);
    if (done) continue;
    done.error().where = option->get_name();
    return done;
  }
  return {};
}

Status choose_shape(const SynthOptions& o, synth::Request* request) {
  std::string json;
  if (!o.shape_file.empty()) {
    TOPKNOT_TRY(json, read_text_file(o.shape_file, synth::kMaxShapeFileBytes));
  }
  if (!o.like.empty()) {
    TOPKNOT_TRY(synth::PresetModel preset, synth::find_preset(o.like));
    request->shape = std::move(preset.shape);
    request->types = std::move(preset.types);
    request->output.split = preset.split;
    return apply_fields(o, json, &request->shape);
  }
  // What is not given depends on the architecture that is.
  synth::ModelShape asked;
  TOPKNOT_CHECK_OK(apply_fields(o, json, &asked));
  request->shape = synth::default_shape(asked.architecture);
  return apply_fields(o, json, &request->shape);
}

Status choose_split(const SynthOptions& o, gguf::SplitLimits* split) {
  if (o.no_split) *split = {};
  if (o.max_size.empty() && o.max_tensors == 0 && !o.metadata_only_first) return {};
  *split = {.max_tensors = o.max_tensors, .metadata_only_first = o.metadata_only_first};
  if (!o.max_size.empty()) {
    TOPKNOT_TRY(split->max_bytes, synth::parse_size(o.max_size));
  }
  return {};
}

Json to_json(const synth::Summary& made, const synth::Request& request) {
  Json parts = Json::array();
  for (const gguf::PlannedPart& part : made.parts) {
    parts.push_back({{"path", json_text(part.path)},
                     {"bytes", part.bytes},
                     {"header_bytes", part.header_bytes},
                     {"tensors", part.tensors}});
  }
  Json types = Json::array();
  for (const auto& [type, bytes] : made.type_bytes) {
    types.push_back({{"type", tensor::dtype_name(type)},
                     {"tensors", made.type_tensors.at(type)},
                     {"bytes", bytes}});
  }
  return {{"architecture", request.shape.architecture},
          {"name", json_text(request.shape.name)},
          {"seed", request.seed},
          {"headers_only", request.output.headers_only},
          {"bytes", made.bytes},
          {"tensors", made.tensors},
          {"parameters", made.parameters},
          {"types", std::move(types)},
          {"parts", std::move(parts)}};
}

std::string to_text(const synth::Summary& made, const SynthOptions& o) {
  const bool sparse = o.request.output.headers_only;
  std::string out = fmt::format(
      "{:.1f} M parameters in {} tensors, {}{}\n", static_cast<double>(made.parameters) / 1e6,
      made.tensors, human_bytes(made.bytes), sparse ? ", only the headers are there" : "");
  for (const auto& [type, bytes] : made.type_bytes) {
    out += fmt::format("  {:<8}{:>6} tensors  {}\n", tensor::dtype_name(type),
                       made.type_tensors.at(type), human_bytes(bytes));
  }
  for (const gguf::PlannedPart& part : made.parts) {
    out += cat(printable(part.path, 4096), o.dry_run ? " (not written)" : "", "\n");
  }
  return out;
}

Status synthesise(const SynthOptions& o) {
  synth::Request request = o.request;
  TOPKNOT_CHECK_OK(choose_shape(o, &request));
  for (const std::string& text : o.types) {
    TOPKNOT_TRY(synth::TypeRule rule, synth::TypeRule::parse(text));
    request.types.push_back(std::move(rule));
  }
  TOPKNOT_CHECK_OK(choose_split(o, &request.output.split));
  request.threads = o.threads == 0 ? available_cores() : o.threads;
  request.quiet = o.json;
  Interrupt::install();
  request.cancel = &Interrupt::flag();
  TOPKNOT_TRY(const synth::Summary made,
              o.dry_run ? synth::plan_model(request) : synth::make_model(request));
  if (o.json) {
    write_json(to_json(made, request));
  } else {
    write_output(to_text(made, o));
  }
  return {};
}

std::string preset_list() {
  std::string out = "Models of --like:\n";
  for (const synth::Preset& preset : synth::presets()) {
    out += fmt::format("  {:<26}{}\n", preset.name, preset.description);
  }
  return out + "\n";
}

void add_field_options(CLI::App* app, SynthOptions* o) {
  const auto fields = synth::shape_fields();
  o->fields.resize(fields.size());
  for (size_t i = 0; i < fields.size(); ++i) {
    std::string name(fields[i].name);
    std::replace(name.begin(), name.end(), '_', '-');
    const std::string help(fields[i].help);
    CLI::Option* option =
        is_flag(fields[i]) ? app->add_flag(cat("--", name, ",!--no-", name), help)
                           : app->add_option(cat(name == "architecture" ? "--arch,--" : "--", name),
                                             o->fields[i], help);
    o->field_options.push_back(option->group("Shape"));
  }
}

void add_output_options(CLI::App* app, SynthOptions* o) {
  app->add_option("-o,--output", o->request.path, "file to write, with or without .gguf")
      ->required();
  app->add_flag("--headers-only", o->request.output.headers_only,
                "sparse files of the full size without weights");
  app->add_option("--split-max-tensors", o->max_tensors, "tensors in a part, at most");
  app->add_option("--split-max-size", o->max_size, "bytes of a part, at most: 48G, 500M, 2GiB");
  app->add_flag("--metadata-only-first-part", o->metadata_only_first,
                "all tensors from the second part on");
  app->add_flag("--no-split", o->no_split, "one file, also of a model that --like splits");
  app->add_flag("--force", o->request.output.force, "overwrite files that are there");
  app->add_flag("--dry-run", o->dry_run, "say what would be written");
}

}  // namespace

void add_synth(CLI::App* program, Action* action) {
  CLI::App* app = program->add_subcommand("synth", "Write a model with random weights");
  const auto o = std::make_shared<SynthOptions>();
  app->add_option("--like", o->like, "a model of the list below");
  app->add_option("--shape", o->shape_file, "JSON object of the options of the group Shape");
  // One value each, or the rule after it would be taken for the output.
  app->add_option("--type", o->types,
                  "type of tensors: q8_0 for all, 'ffn_.*_exps=q4_k' for those whose name matches; "
                  "the last rule that matches counts")
      ->allow_extra_args(false);
  app->add_option("--seed", o->request.seed, "same seed, same bytes")->capture_default_str();
  app->add_option("--gain", o->request.gain, "factor on the scale of every weight")
      ->capture_default_str();
  app->add_option("-t,--threads", o->threads, "threads; 0: every core")->capture_default_str();
  add_output_options(app, o.get());
  add_json_option(app, &o->json);
  add_field_options(app, o.get());
  app->footer(preset_list() +
              examples({
                  "topknot synth --like tiny -o tiny",
                  "topknot synth --like glm-5-ud-q4_k_xl --headers-only -o glm-5",
                  "topknot synth --like bench --dry-run -o bench --json",
                  "topknot synth --like tiny --experts 16 --type q8_0 --type exps=iq2_xs -o mixed",
                  "topknot synth --arch deepseek2 --layers 6 --split-max-tensors 20 -o v3",
              }));
  app->callback([o, action] {
    *action = [o] {
      const auto status = synthesise(*o);
      return status ? 0 : report(status.error());
    };
  });
}

}  // namespace topknot::cli
