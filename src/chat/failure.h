// How the interpreter gives up. A template is a deep recursion over many small functions, so inside
// this folder an error travels as an exception; Template::parse and Template::render, the only ways
// in, turn it into an Error and nothing is thrown past them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/strings.h"
#include "topknot/error.h"

namespace topknot::chat {

// Lines and columns count from 1; a column counts bytes of the template as it stands in the file,
// with any line ending counted as one byte.
struct Position {
  uint32_t line = 1;
  uint32_t column = 1;
};

struct Failure {
  Error error;
  bool placed = false;  // error.where is set
};

[[noreturn]] inline void fail(Code code, std::string what, std::string why, std::string fix = {}) {
  throw Failure{Error{.code = code,
                      .what = std::move(what),
                      .where = {},
                      .why = std::move(why),
                      .fix = std::move(fix)}};
}

// What Python would answer with a TypeError, ValueError, KeyError ... at this point of the
// template.
template <class... Args>
[[noreturn]] void fail_value(const Args&... why) {
  fail(Code::kInvalidArgument, "the chat template failed on these messages", cat(why...),
       "check that the request has the fields the template reads, or pass another template");
}

template <class... Args>
[[noreturn]] void fail_limit(const Args&... why) {
  fail(Code::kOutOfRange, "the chat template went over a limit", cat(why...),
       "shorten the conversation; if it is short, the template is faulty");
}

template <class... Args>
[[noreturn]] void fail_unsupported(const Args&... what) {
  fail(Code::kUnsupported, "the chat template uses something Topknot does not offer", cat(what...),
       "pass a template that does without it, and report the one that needs it");
}

}  // namespace topknot::chat
