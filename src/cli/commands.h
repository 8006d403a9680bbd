// Every command of the program. Each function declares its options and, when the command is the one
// that was given, leaves what to do in `action`, which returns the exit code.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace topknot::cli {

using Action = std::function<int()>;

void add_run(CLI::App* program, Action* action);
void add_inspect(CLI::App* program, Action* action);
void add_plan(CLI::App* program, Action* action);
void add_perplexity(CLI::App* program, Action* action);
void add_tokenize(CLI::App* program, Action* action);
void add_backends(CLI::App* program, Action* action);
void add_doctor(CLI::App* program, Action* action);
void add_synth(CLI::App* program, Action* action);
void add_bench(CLI::App* program, Action* action);

}  // namespace topknot::cli
