// The program: picks the command, and turns every failure into a message and an exit code.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>
#include <new>
#include <sstream>

#include "base/mapped_range.h"
#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "device/version_report.h"

namespace topknot::cli {
namespace {

void declare(CLI::App* program, Action* action) {
  program->name("topknot");
  program->description(
      "Runs sparse-attention mixture-of-experts models of the GLM-5 family from GGUF files.");
  program->set_version_flag("--version", [] {
    std::string report = device::version_report();
    if (!report.empty() && report.back() == '\n') report.pop_back();  // CLI11 adds one
    return report;
  });
  program->require_subcommand(0, 1);
  program->footer(
      examples({"topknot run -m model.gguf -p \"Who wrote Emma?\"", "topknot inspect model.gguf",
                "topknot plan -m model.gguf", "topknot run --help"}));
  add_run(program, action);
  add_inspect(program, action);
  add_plan(program, action);
  add_perplexity(program, action);
  add_tokenize(program, action);
  add_backends(program, action);
  add_doctor(program, action);
  add_synth(program, action);
  add_bench(program, action);
  program->allow_extras();  // reported by check_extras, with near misses
  for (CLI::App* command : program->get_subcommands([](CLI::App*) { return true; })) {
    command->allow_extras();
  }
}

int run_program(std::vector<std::string> arguments) {
  CLI::App program;
  Action action;
  declare(&program, &action);
  if (const auto habit = check_habits(arguments, program)) return report(*habit);
  arguments = expand_short_names(std::move(arguments), program);
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  try {
    program.parse(arguments);
  } catch (const CLI::Success& asked) {  // --help, --version
    std::ostringstream out;
    program.exit(asked, out, out);
    write_output(out.str());
    return 0;
  } catch (const CLI::ParseError& error) {
    // An unknown option is often the cause of what else is missing.
    const auto extras = check_extras(program);
    return report(extras ? *extras : usage_error(error, program));
  }
  if (const auto extras = check_extras(program)) return report(*extras);
  if (const auto empty = check_empty(program)) return report(*empty);
  if (!action) {
    write_output(program.help());
    return 0;
  }
  return action();
}

// A descriptor of 0, 1 or 2 that the caller closed would go to the next file that is opened. For
// reading only: what is written to a closed output must fail, not vanish.
void open_standard_descriptors() {
  int fd = 0;
  do {
    fd = ::open("/dev/null", O_RDONLY);  // takes the lowest number that is free
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd > STDERR_FILENO) ::close(fd);
}

int run_guarded(std::vector<std::string> arguments) {
  try {
    return run_program(std::move(arguments));
  } catch (const std::bad_alloc&) {
    return report(Error{.code = Code::kResource,
                        .what = "memory ran out",
                        .why = "the system refused an allocation",
                        .fix = "use a smaller context (-c) or a smaller model"});
  } catch (const std::exception& error) {  // of a library, where nobody expected it
    return report(Error{.code = Code::kResource,
                        .what = "the command could not be completed",
                        .why = printable(error.what(), 400),
                        .fix = "report this with the command line that was used"});
  }
}

}  // namespace
}  // namespace topknot::cli

int main(int argc, char** argv) {
  topknot::cli::open_standard_descriptors();
  // A reader that went away shows as a failed write, which ends the program quietly.
  std::signal(SIGPIPE, SIG_IGN);
  topknot::report_lost_files(topknot::cli::exit_code(topknot::Code::kIo));
  return topknot::cli::run_guarded({argv + (argc > 0 ? 1 : 0), argv + argc});
}
