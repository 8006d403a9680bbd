// Template source to tokens, with jinja2's whitespace rules for trim_blocks and lstrip_blocks on
// and keep_trailing_newline off, which is how chat templates are rendered.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chat/failure.h"

namespace topknot::chat {

enum class Token : uint8_t {
  kData,
  kVariableBegin,
  kVariableEnd,
  kBlockBegin,
  kBlockEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Lexeme {
  Token token = Token::kEnd;
  Position at;
  std::string text;  // data, name, operator; a string's value with its escapes resolved
  int64_t integer = 0;
  double real = 0;
};

// The last lexeme is kEnd. Throws Failure.
std::vector<Lexeme> tokenize(const std::string& source);

}  // namespace topknot::chat
