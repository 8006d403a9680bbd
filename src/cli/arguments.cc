#include "cli/arguments.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"

namespace topknot::cli {
namespace {

// As llama.cpp's users type it, and as CLI11 can parse it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kLongNames = {{
    {"-sys", "--system-prompt"},
    {"-ub", "--ubatch-size"},
    {"-ctk", "--cache-type-k"},
    {"-tp", "--tensor-parallel-size"},
    {"-np", "--parallel"},
}};

// The option that `argument` names, without a value in the same word; null when there is none.
const CLI::Option* option_of(const CLI::App& app, const std::string& argument) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (argument == "--" + name) return option;
    }
    for (const std::string& name : option->get_snames()) {
      if (argument == "-" + name) return option;
    }
  }
  return nullptr;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::vector<const CLI::App*> all_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : all_commands(app)) names.push_back(command->get_name());
  return names;
}

std::string did_you_mean(const std::string& wrong, const std::vector<std::string>& candidates) {
  std::string out;
  for (const std::string& name : nearest(wrong, candidates)) {
    out += cat(out.empty() ? "did you mean " : " or ", name);
  }
  return out.empty() ? out : out + "? ";
}

const CLI::App& parsed_command(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : *parsed.front();
}

// A word too many is the model where none was given.
bool wants_model(const CLI::App& command) {
  const CLI::Option* model = option_of(command, "--model");
  return model != nullptr && model->count() == 0;
}

std::string help_of(const CLI::App& command) {
  return command.get_parent() == nullptr ? "topknot --help"
                                         : cat("topknot ", command.get_name(), " --help");
}

}  // namespace

std::vector<std::string> expand_short_names(std::vector<std::string> arguments,
                                            const CLI::App& app) {
  const CLI::App* command = &app;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string& argument = arguments[i];
    if (argument == "--") break;
    if (command == &app) {
      for (const CLI::App* each : all_commands(app)) {
        if (each->get_name() == argument) command = each;
      }
    }
    for (const auto& [typed, name] : kLongNames) {
      if (argument == typed && option_of(*command, std::string(name)) != nullptr) argument = name;
    }
    const CLI::Option* option = option_of(*command, argument);
    if (option != nullptr && option->get_items_expected_min() > 0) ++i;
  }
  return arguments;
}

std::optional<Error> check_extras(const CLI::App& app) {
  const CLI::App& command = parsed_command(app);
  std::vector<std::string> extras = command.remaining();
  if (extras.empty()) extras = app.remaining();
  if (extras.empty()) return std::nullopt;
  const std::string& wrong = extras.front();
  const bool is_option = wrong.size() > 1 && wrong.front() == '-';
  const std::string name = wrong.substr(0, wrong.find('='));
  const bool is_command = !is_option && &command == &app;
  const char* kind = is_option ? "option" : is_command ? "command" : "argument";
  const auto candidates = is_option    ? option_names(command)
                          : is_command ? command_names(app)
                                       : std::vector<std::string>();
  const bool is_model = !is_option && !is_command && wants_model(command);
  return Error{.code = Code::kInvalidArgument,
               .what = cat(is_option || is_command ? "unknown " : "unexpected ", kind, " '",
                           printable(is_option ? name : wrong), "'"),
               .fix = cat(is_model ? "give the model with -m; " : did_you_mean(name, candidates),
                          "see `", help_of(command), "`")};
}

Error usage_error(const CLI::ParseError& error, const CLI::App& app) {
  const CLI::App& command = parsed_command(app);
  return Error{.code = Code::kInvalidArgument,
               .what = printable(error.what(), 400),
               .fix = cat("see `", help_of(command), "`")};
}

}  // namespace topknot::cli
