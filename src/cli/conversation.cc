#include "cli/conversation.h"

#include <unistd.h>

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "base/try.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/line_reader.h"

namespace topknot::cli {
namespace {

constexpr std::string_view kHelp =
    "/help         this list\n"
    "/reset        forget the conversation\n"
    "/system TEXT  set the system message; without TEXT, none\n"
    "/exit, /quit  leave (also Ctrl-D, or Ctrl-C twice)\n"
    "A line that ends in \\ goes on in the next one; \"\"\" begins and ends a text of many lines.\n"
    "Ctrl-C ends an answer or drops the line. A space before / sends the line as text.\n";
constexpr std::array<std::string_view, 5> kCommands = {"/help", "/reset", "/system", "/exit",
                                                       "/quit"};

class Conversation {
 public:
  Conversation(Engine* engine, ConversationOptions options)
      : engine_(*engine), options_(std::move(options)), terminal_(::isatty(STDIN_FILENO) == 1) {}

  int run() {
    if (terminal_ && !options_.answer.quiet) write_message("/help lists the commands\n");
    LineReader reader(STDIN_FILENO);
    bool dropped = false;  // the terminal dropped the line, and we cannot know if it was empty
    for (;;) {
      std::string turn;
      switch (reader.read_turn(terminal_ ? "> " : "", terminal_ ? ". " : "", &turn)) {
        case Input::kText: dropped = false; break;
        case Input::kEnd:
          if (terminal_) write_message("\n");
          return 0;
        case Input::kInterrupted:
          if (!terminal_ || dropped) {
            write_message("\n");
            return terminal_ ? 0 : kExitInterrupt;
          }
          write_message("\nCtrl-C again or Ctrl-D leaves\n");
          dropped = true;
          continue;
        case Input::kTooLong:
          return report(Error{.code = Code::kOutOfRange,
                              .what = "the line is too long",
                              .where = "standard input",
                              .why = cat("more than ", kMaxLineBytes, " bytes without a newline"),
                              .fix = "give long texts with -f"});
      }
      if (turn.empty()) continue;
      if (turn.front() == '/') {
        if (!obey(turn)) return 0;
        continue;
      }
      if (auto status = take_turn(std::move(turn)); !status) {
        const int code = report(status.error());
        if (!terminal_) return code;
      }
      if (Interrupt::consume() && !terminal_) return kExitInterrupt;
    }
  }

 private:
  // False: leave.
  bool obey(std::string_view line) {
    const size_t space = line.find_first_of(" \n");
    const std::string_view command = line.substr(0, space);
    const std::string_view rest =
        space == std::string_view::npos ? std::string_view() : line.substr(space + 1);
    if (command == "/exit" || command == "/quit") return false;
    if (command == "/help") {
      write_message(kHelp);
    } else if (command == "/reset") {
      history_.clear();
      write_message("the conversation is forgotten\n");
    } else if (command == "/system") {
      options_.system = rest;
      write_message(rest.empty() ? "no system message\n" : "the system message is set\n");
    } else {
      unknown(command);
    }
    return true;
  }

  static void unknown(std::string_view command) {
    const std::vector<std::string> names(kCommands.begin(), kCommands.end());
    const auto near = nearest(command, names, 1);
    report(Error{.code = Code::kInvalidArgument,
                 .what = cat("unknown command '", printable(command), "'"),
                 .fix = cat(near.empty() ? "" : cat("did you mean ", near.front(), "? "),
                            "/help lists the commands; a space before / sends the line as text")});
  }

  Error with_reset(Error error) const {
    if (error.code == Code::kOutOfRange && !history_.empty()) {
      error.fix += "; /reset forgets the conversation so far";
    }
    return error;
  }

  Status take_turn(std::string turn) {
    TOPKNOT_CHECK_OK(check_text(turn, "the message", "standard input"));
    std::vector<Message> messages;
    if (!options_.system.empty())
      messages.push_back({.role = "system", .content = options_.system});
    messages.insert(messages.end(), history_.begin(), history_.end());
    Message asked{.role = "user", .content = std::move(turn)};
    messages.push_back(asked);
    TOPKNOT_TRY(auto prompt, engine_.chat_prompt(messages, options_.chat));
    auto answered = answer(&engine_, std::move(prompt), options_.answer);
    if (!answered) return with_reset(answered.error());
    Completion& completion = *answered;
    // Cancelled before there was an answer: as if it had not been asked.
    if (completion.stop == StopReason::kCancelled && completion.tokens.empty()) return {};
    history_.push_back(std::move(asked));
    // Reasoning stands in the content as it was produced: the template takes it apart.
    history_.push_back({.role = "assistant", .content = std::move(completion.text)});
    return {};
  }

  Engine& engine_;
  ConversationOptions options_;
  bool terminal_;
  std::vector<Message> history_;
};

}  // namespace

int converse(Engine* engine, ConversationOptions options) {
  return Conversation(engine, std::move(options)).run();
}

}  // namespace topknot::cli
