// `run` without a prompt: a conversation on standard input, with a terminal or without.
#pragma once

#include <string>

#include "cli/answer.h"
#include "topknot/engine.h"

namespace topknot::cli {

struct ConversationOptions {
  AnswerOptions answer;
  ChatOptions chat;
  std::string system;  // empty: none
};

// Turns until the end of the input. Returns the exit code: an error of a turn ends a conversation
// that is read from a pipe; at a terminal the user may go on.
int converse(Engine* engine, ConversationOptions options);

}  // namespace topknot::cli
