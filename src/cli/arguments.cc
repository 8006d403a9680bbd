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

// Options of llama.cpp that people type by habit. Each is refused with what it means there and what
// to do here; none is ignored, since its effect would be missed later.
struct Habit {
  std::string_view names[3];
  const char* meaning;
  const char* fix;
};
constexpr const char* kLeaveOut = "leave it out";
constexpr const char* kNoGpu = "GPU kernels do not exist in this version; leave it out";
constexpr const char* kPromptDecides =
    "leave it out: with -p or -f there is one answer, else a chat";
constexpr Habit kHabits[] = {
    {{"-ngl", "--n-gpu-layers", "--gpu-layers"}, "layers to keep on a GPU", kNoGpu},
    {{"-fa", "--flash-attn"},
     "flash attention",
     "leave it out: --attention-backend names a way to attend, and one is chosen without it"},
    {{"-b", "--batch-size"}, "the logical batch", "use -ub, the tokens of one step of prefill"},
    {{"-ctv", "--cache-type-v"},
     "the type of the value cache",
     "use -ctk: these models have one cache for keys and values"},
    {{"-tb", "--threads-batch"}, "threads of prefill", "use -t, for prefill and generation"},
    {{"-cnv", "--conversation"}, "a conversation", kPromptDecides},
    {{"-no-cnv", "--no-conversation"},
     "no conversation",
     "leave it out: with -p or -f there is one answer, and --raw uses no chat template"},
    {{"-st", "--single-turn"}, "a conversation of one turn", kPromptDecides},
    {{"-i", "--interactive"}, "an interactive session", kPromptDecides},
    {{"--jinja"}, "use of the model's template", "leave it out: the template is always used"},
    {{"--no-warmup"}, "no run before the first prompt", "leave it out: there is none"},
    {{"--color"}, "coloured output", kLeaveOut},
};

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

// The command that the arguments up to `argument` name; `app` while there is none.
const CLI::App* command_after(const CLI::App& app, const CLI::App* command,
                              const std::string& argument) {
  if (command != &app) return command;
  for (const CLI::App* each : all_commands(app)) {
    if (each->get_name() == argument) return each;
  }
  return command;
}

// What CLI11 can parse instead of `argument`; most often the same.
std::string long_name(const CLI::App& command, const std::string& argument) {
  for (const auto& [typed, name] : kLongNames) {
    if (argument == typed && option_of(command, std::string(name)) != nullptr) {
      return std::string(name);
    }
  }
  return argument;
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

std::string_view name_of(std::string_view argument) {
  return argument.substr(0, argument.find('='));
}

const Habit* habit_of(const CLI::App& command, const std::string& argument) {
  const std::string_view name = name_of(argument);
  if (name.empty() || option_of(command, std::string(name)) != nullptr) return nullptr;
  for (const Habit& habit : kHabits) {
    if (std::find(std::begin(habit.names), std::end(habit.names), name) != std::end(habit.names)) {
      return &habit;
    }
  }
  return nullptr;
}

// -n=3 in two words. CLI11 takes "=3" for the value of a short option.
void split_short_value(const CLI::App& app, std::vector<std::string>* arguments) {
  const CLI::App* command = &app;
  for (size_t i = 0; i < arguments->size(); ++i) {
    const std::string argument = (*arguments)[i];
    if (argument == "--") return;
    command = command_after(app, command, argument);
    const CLI::Option* option = option_of(*command, long_name(*command, argument));
    if (option != nullptr && option->get_items_expected_min() > 0) {
      ++i;
      continue;
    }
    const std::string name(name_of(argument));
    if (name.size() == argument.size() || name.starts_with("--")) continue;
    option = option_of(*command, long_name(*command, name));
    if (option == nullptr || option->get_items_expected_min() == 0) continue;
    (*arguments)[i] = name;
    arguments->insert(arguments->begin() + static_cast<std::ptrdiff_t>(i) + 1,
                      argument.substr(name.size() + 1));
    ++i;
  }
}

}  // namespace

std::optional<Error> check_habits(const std::vector<std::string>& arguments, const CLI::App& app) {
  const CLI::App* command = &app;
  for (size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    command = command_after(app, command, arguments[i]);
    const CLI::Option* option = option_of(*command, long_name(*command, arguments[i]));
    if (option != nullptr && option->get_items_expected_min() > 0) ++i;
    if (option != nullptr || option_of(*command, "--ubatch-size") == nullptr) continue;
    const Habit* habit = habit_of(*command, arguments[i]);
    if (habit == nullptr) continue;
    const std::string_view name = name_of(arguments[i]);
    return Error{.code = Code::kInvalidArgument,
                 .what = cat(name, " is no option of `topknot ", command->get_name(), "`"),
                 .why = cat("elsewhere it means: ", habit->meaning),
                 .fix = habit->fix};
  }
  return std::nullopt;
}

std::vector<std::string> expand_short_names(std::vector<std::string> arguments,
                                            const CLI::App& app) {
  split_short_value(app, &arguments);
  const CLI::App* command = &app;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string& argument = arguments[i];
    if (argument == "--") break;
    command = command_after(app, command, argument);
    argument = long_name(*command, argument);
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

std::optional<Error> check_empty(const CLI::App& app) {
  // An empty prompt or text is one.
  constexpr std::string_view kNames[] = {"--attention-backend", "--backend", "--baseline",
                                         "--catalog",           "--device",  "--devices",
                                         "--explain",           "--report",  "--svg"};
  const CLI::App& command = parsed_command(app);
  for (const std::string_view name : kNames) {
    const CLI::Option* option = option_of(command, std::string(name));
    if (option == nullptr || option->count() == 0) continue;
    const std::vector<std::string> given = option->results();
    if (std::find(given.begin(), given.end(), "") == given.end()) continue;
    return Error{.code = Code::kInvalidArgument,
                 .what = cat(name, " is empty"),
                 .where = std::string(name),
                 .why = "an empty text names nothing",
                 .fix = cat("give a value or leave the option out; see `", help_of(command), "`")};
  }
  return std::nullopt;
}

Error usage_error(const CLI::ParseError& error, const CLI::App& app) {
  const CLI::App& command = parsed_command(app);
  return Error{.code = Code::kInvalidArgument,
               .what = printable(error.what(), 400),
               .fix = cat("see `", help_of(command), "`")};
}

}  // namespace topknot::cli
