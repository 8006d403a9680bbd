// topknot run: a prompt in, text out; or a conversation.
#include <charconv>
#include <memory>

#include "base/log.h"
#include "base/strings.h"
#include "base/try.h"
#include "cli/answer.h"
#include "cli/commands.h"
#include "cli/conversation.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "engine/sampler.h"

namespace topknot::cli {
namespace {

constexpr int kMaxLogprobs = 1000;

struct RunOptions {
  ModelOptions model;
  AnswerOptions answer;
  ChatOptions chat;
  CLI::Option* prompt_given = nullptr;
  CLI::Option* file_given = nullptr;
  std::string prompt;
  std::string prompt_file;
  std::string system;
  bool raw = false;
};

void add_prompt_options(CLI::App* app, RunOptions* o) {
  o->prompt_given = app->add_option("-p,--prompt", o->prompt, "the user's message");
  o->file_given =
      app->add_option("-f,--file", o->prompt_file,
                      "file that holds the message; - reads standard input. A byte order mark "
                      "and one newline at the end are dropped");
  o->file_given->excludes(o->prompt_given);
  app->add_option("--system-prompt", o->system, "(-sys) system message");
  app->add_flag("--raw", o->raw,
                "the prompt as it is: special tokens are parsed, no chat template is used");
  app->add_option("--chat-template-file", o->model.chat_template_file,
                  "Jinja template instead of the model's own");
  app->add_flag_callback(
      "--think", [o] { o->chat.enable_thinking = true; }, "ask the template for reasoning");
  app->add_flag_callback(
      "--no-think", [o] { o->chat.enable_thinking = false; }, "ask for none");
}

// The system's 64-bit seeds must be accepted as they were printed, and -1 as llama.cpp spells it.
void take_seed(const std::string& text, std::optional<uint64_t>* seed) {
  if (text == "-1") return;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw CLI::ValidationError("--seed", cat("'", printable(text), "' is not a number of 0 to ",
                                             UINT64_MAX, ", or -1 for a random one"));
  }
  *seed = value;
}

void add_sampling_options(CLI::App* app, RunOptions* o) {
  SamplingOptions& s = o->answer.request.sampling;
  const auto number = [app](const char* names, auto& value, const char* what) {
    app->add_option(names, value, what)->capture_default_str();
  };
  number("--temp,--temperature", s.temperature, "temperature; 0: always the likeliest token");
  number("--top-k", s.top_k, "of the likeliest tokens; 0: all");
  number("--top-p", s.top_p, "of the likeliest tokens with this probability; 1: all");
  number("--min-p", s.min_p, "of tokens this likely, relative to the likeliest; 0: all");
  number("--repeat-penalty,--repetition-penalty", s.repeat_penalty, "1: none");
  number("--repeat-last-n", s.repeat_last_n, "tokens the repeat penalty looks back; -1: all");
  number("--presence-penalty", s.presence_penalty, "for tokens already generated");
  number("--frequency-penalty", s.frequency_penalty, "for each time a token was generated");
  app->add_option_function<std::string>(
      "-s,--seed", [&s](const std::string& text) { take_seed(text, &s.seed); },
      "of the sampling; -1: from the system");
}

void add_output_options(CLI::App* app, RunOptions* o) {
  GenerateRequest& request = o->answer.request;
  app->add_option("-n,--n-predict,--predict,--max-tokens", request.max_tokens,
                  "most tokens to generate; -1: until a stop or the end of the context")
      ->capture_default_str();
  app->add_option("--stop", request.stop, "text that ends the answer; repeatable")
      ->allow_extra_args(false)
      ->type_name("TEXT");
  app->add_flag("--ignore-eos", request.ignore_eos, "go on after an end-of-turn token");
  app->add_option("--logprobs", request.logprobs, "report this many alternatives with each token")
      ->check(CLI::Range(0, kMaxLogprobs));
  add_json_option(app, &o->answer.json);
}

Error no_place_for(const char* option, const char* why, const char* fix) {
  return Error{.code = Code::kInvalidArgument,
               .what = cat(option, " cannot be used here"),
               .why = why,
               .fix = fix};
}

Result<std::string> read_prompt(const RunOptions& o) {
  const bool from_file = o.file_given->count() > 0;
  std::string text = o.prompt;
  if (from_file) {
    TOPKNOT_TRY(const std::string read, read_text(o.prompt_file));
    text = prompt_of_file(read);
  }
  TOPKNOT_CHECK_OK(check_text(text, "the prompt", from_file ? o.prompt_file : "-p, --prompt"));
  return text;
}

Result<int> answer_once(const RunOptions& o, Engine* engine, const std::string& text) {
  std::vector<int32_t> prompt;
  if (o.raw) {
    TOPKNOT_TRY(prompt, engine->tokenize(text, true));
  } else {
    std::vector<Message> messages;
    if (!o.system.empty()) messages.push_back({.role = "system", .content = o.system});
    messages.push_back({.role = "user", .content = text});
    TOPKNOT_TRY(prompt, engine->chat_prompt(messages, o.chat));
  }
  TOPKNOT_TRY(const Completion done, answer(engine, std::move(prompt), o.answer));
  return done.stop == StopReason::kCancelled ? kExitInterrupt : 0;
}

Status check_max_tokens(int64_t tokens) {
  if (tokens >= -1) return {};
  return Error{.code = Code::kInvalidArgument,
               .what = cat("-n ", tokens, " is no number of tokens"),
               .why = "needed: 0 or more, or -1 for no limit of its own",
               .fix = "-n -1 generates until a stop or the end of the context"};
}

// All that can be refused before a model is read, is.
Result<int> run(RunOptions* o) {
  const bool one_shot = o->prompt_given->count() > 0 || o->file_given->count() > 0;
  if (o->raw && !one_shot) {
    return no_place_for("--raw", "a conversation needs the chat template", "give -p or -f, too");
  }
  if (o->raw && !o->system.empty()) {
    return no_place_for("-sys", "--raw uses no chat template that could place a system message",
                        "write it into the prompt, or leave --raw out");
  }
  std::string text;
  if (one_shot) {
    TOPKNOT_TRY(text, read_prompt(*o));
  }
  TOPKNOT_CHECK_OK(check_max_tokens(o->answer.request.max_tokens));
  TOPKNOT_CHECK_OK(engine::check_sampling(o->answer.request.sampling));
  if (!o->system.empty())
    TOPKNOT_CHECK_OK(check_text(o->system, "the system message", "-sys, --system-prompt"));
  TOPKNOT_TRY(Engine engine, open_engine(&o->model));
  o->answer.quiet = o->model.engine.quiet;
  log_info(describe(engine.info()));
  Interrupt::install();
  if (one_shot) return answer_once(*o, &engine, text);
  return converse(&engine, {.answer = o->answer, .chat = o->chat, .system = o->system});
}

}  // namespace

void add_run(CLI::App* program, Action* action) {
  CLI::App* app = program->add_subcommand("run", "Answer a prompt, or hold a conversation");
  const auto o = std::make_shared<RunOptions>();
  add_prompt_options(app, o.get());
  add_sampling_options(app, o.get());
  add_output_options(app, o.get());
  add_model_options(app, ContextOption::kYes, &o->model);
  app->footer(examples({
      "topknot run -m model.gguf -p \"Who wrote Emma?\" --temp 0",
      "topknot run -m model.gguf -sys \"Answer briefly.\" -f prompt.txt -n 20 --json",
      "topknot run -m model.gguf --raw -p \"In the beginning God created\" -n 20 --seed 7",
      "echo \"What is water?\" | topknot run -m model.gguf -f - -n 20 --logprobs 3",
      "topknot run -m model.gguf",
  }));
  app->callback([o, action] {
    *action = [o] {
      const auto code = run(o.get());
      return code ? *code : report(code.error());
    };
  });
}

}  // namespace topknot::cli
