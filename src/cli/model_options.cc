#include "cli/model_options.h"

#include "base/log.h"
#include "base/mapped_file.h"
#include "base/strings.h"
#include "base/try.h"
#include "chat/limits.h"

namespace topknot::cli {
namespace {

// Notes of defaults say which key "is absent": they change what the model computes, so everyone
// sees them. The others (tensors left out) are for those who ask.
bool is_default_note(const std::string& note) {
  return note.find(" is absent") != std::string::npos;
}

void log_engine(const EngineInfo& info) {
  for (const std::string& warning : info.warnings) log_warning(warning);
  for (const std::string& note : info.notes) {
    log_message(is_default_note(note) ? LogLevel::kInfo : LogLevel::kDebug, note);
  }
}

Status check_device(const std::string& device) {
  if (device == "cpu") return {};
  const bool gpu = device.starts_with("cuda");
  return Error{
      .code = gpu ? Code::kUnsupported : Code::kInvalidArgument,
      .what = cat("no model can be run on device '", printable(device), "'"),
      .where = "--device",
      .why = cat("needed: kernels for this device; found: those of the cpu",
                 gpu ? ", GPU kernels do not exist in this version" : ""),
      .fix = gpu ? "--device cpu; `topknot plan` says what a GPU would need" : "--device cpu"};
}

}  // namespace

CLI::Option* add_model_option(CLI::App* app, std::string* model) {
  return app->add_option("-m,--model", *model,
                         "GGUF file, any part of a split model, or its directory");
}

CLI::Option* add_library_option(CLI::App* app, std::vector<std::string>* libraries) {
  return app
      ->add_option("--backend-library", *libraries,
                   "shared library with an attention backend, tried before all others or where it "
                   "is placed (docs/backends.md); repeatable")
      ->allow_extra_args(false)
      ->type_name("PATH[,name=NAME][,before=NAME|,after=NAME]");
}

void add_override_option(CLI::App* app, std::vector<std::string>* overrides) {
  app->add_option("--override-kv", *overrides,
                  "KEY=TYPE:VALUE (int, float, bool, str) instead of the file's; repeatable")
      ->allow_extra_args(false)
      ->type_name("KEY=TYPE:VALUE");
}

void add_json_option(CLI::App* app, bool* json) {
  app->add_flag("--json", *json, "print one JSON object instead of text");
}

void add_model_options(CLI::App* app, ContextOption context, ModelOptions* options) {
  EngineOptions& engine = options->engine;
  add_model_option(app, &engine.model)->required();
  if (context == ContextOption::kYes) {
    app->add_option("-c,--ctx-size,--max-model-len", engine.context,
                    "tokens of context; 0: chosen from the model and free memory")
        ->capture_default_str();
  }
  app->add_option("--device", options->device, "cpu; this version runs models on no other")
      ->capture_default_str();
  app->add_option("-t,--threads", engine.threads, "threads; 0: every core")->capture_default_str();
  app->add_option("--ubatch-size", engine.ubatch, "(-ub) most tokens of one step of prefill")
      ->capture_default_str();
  app->add_option("--dtype", engine.dtype, "residual stream: auto, f32, bf16")
      ->capture_default_str();
  app->add_option("--kv-cache-dtype,--cache-type-k", engine.kv_cache_dtype,
                  "(-ctk) cache rows: auto, f32, bf16")
      ->capture_default_str();
  app->add_option("--attention-backend", engine.attention_backend,
                  "a name of `topknot backends`; an error when it cannot run the model");
  add_library_option(app, &engine.backend_libraries);
  app->add_option("--kernels", engine.kernels,
                  "instruction set: auto, avx512, avx2, portable, reference")
      ->capture_default_str();
  app->add_flag("--dense", engine.dense, "attend to every key, whatever the indexer would select");
  add_override_option(app, &engine.override_kv);
  app->add_flag("-v,--verbose", options->verbose, "say more about the model");
  app->add_flag("-q,--quiet", engine.quiet, "warnings, errors and results only");
}

Result<Engine> open_engine(ModelOptions* options) {
  TOPKNOT_CHECK_OK(check_device(options->device));
  if (options->engine.quiet) set_log_level(LogLevel::kWarning);
  if (options->verbose) set_log_level(LogLevel::kDebug);
  if (!options->chat_template_file.empty()) {
    TOPKNOT_TRY(options->engine.chat_template,
                read_text_file(options->chat_template_file, chat::kMaxTemplateBytes));
    if (options->engine.chat_template.empty()) {
      return Error{.code = Code::kCorrupt,
                   .what = "the chat template is empty",
                   .where = options->chat_template_file,
                   .why = "the file has no bytes",
                   .fix = "give a Jinja template, or leave --chat-template-file out"};
    }
  }
  TOPKNOT_TRY(Engine engine, Engine::open(options->engine));
  log_engine(engine.info());
  return engine;
}

std::string describe(const EngineInfo& info) {
  const std::string attention = info.sparse ? cat("sparse attention top-", info.index_topk)
                                            : cat("dense attention (", info.attention_reason, ")");
  return cat(info.architecture, " '", info.model_name, "', ", human_bytes(info.weight_bytes),
             " of weights, context ", info.context, ", ", attention, " by ", info.attention_backend,
             " (", info.kernels, ", ", info.threads, info.threads == 1 ? " thread" : " threads",
             "), activations ", info.dtype, ", cache ", info.kv_cache_dtype, " ",
             human_bytes(info.cache_bytes), " at most");
}

std::string examples(const std::vector<std::string>& lines) {
  std::string out = "Examples:";
  for (const std::string& line : lines) out += "\n  " + line;
  return out;
}

}  // namespace topknot::cli
