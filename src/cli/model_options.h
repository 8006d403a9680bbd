// The options of every command that loads a model, declared once.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "topknot/engine.h"
#include "topknot/error.h"

namespace topknot::cli {

enum class ContextOption : uint8_t { kYes, kNo };  // perplexity has a window instead

struct ModelOptions {
  EngineOptions engine;
  std::string chat_template_file;
  std::string device = "cpu";
  bool verbose = false;
};

// -m/--model for commands that need nothing else of a model.
CLI::Option* add_model_option(CLI::App* app, std::string* model);
// --backend-library, the same words everywhere.
CLI::Option* add_library_option(CLI::App* app, std::vector<std::string>* libraries);
void add_override_option(CLI::App* app, std::vector<std::string>* overrides);
void add_model_options(CLI::App* app, ContextOption context, ModelOptions* options);
// --json, the same words everywhere.
void add_json_option(CLI::App* app, bool* json);

// Sets the log level, reads the template file, opens the engine and logs its warnings and notes.
Result<Engine> open_engine(ModelOptions* options);

// "glm-dsa 'name', 15.0 MiB of weights, context 16384, sparse attention top-256 by cpu_simd ..."
std::string describe(const EngineInfo& info);

// The examples at the end of --help, one command line each.
std::string examples(const std::vector<std::string>& lines);

}  // namespace topknot::cli
