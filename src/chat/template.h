// A chat template: Jinja as published models use it, parsed once and rendered for each
// conversation.
//
// The language is jinja2 3.1 as transformers configures it: sandboxed, immutable, trim_blocks,
// lstrip_blocks, {% break %} and {% continue %}, {% generation %}, and the globals raise_exception
// and strftime_now; `tojson` is json.dumps without HTML escaping. Oracle:
// tests/data/jinja_cases.json, written by jinja2 itself through tools/make_jinja_cases.py.
//
// The rendered text comes in segments that say where it is from. Encode control tokens in trusted
// segments only: then no message can forge a turn, whatever it contains.
//
// Differences from jinja2, all refused with kUnsupported rather than rendered otherwise: include,
// import, inheritance, recursive loops, filters and tests that no chat template uses. Integers have
// 64 bits. The results of `safe` and `escape` mark text as HTML for `+` and `escape` only, not
// through methods.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "chat/limits.h"
#include "chat/runtime.h"
#include "topknot/error.h"

namespace topknot::chat {

struct Program;

struct Segment {
  std::string text;
  bool trusted = false;  // written by the template, not taken from a message
};

struct Rendered {
  std::vector<Segment> segments;  // none empty; neighbours differ in `trusted`
  std::string text() const;
};

struct RenderOptions {
  RenderLimits limits;
  Clock clock;  // for strftime_now; local time when empty
  // Names of variables whose strings are the model's own, such as bos_token.
  std::vector<std::string> trusted_variables;
  // The name of the variable that holds the messages (see messages_from_json in json.h).
  std::string messages_variable = "messages";
};

class Template {
 public:
  // `name` is what errors call the template. kCorrupt where jinja2 would refuse it, too;
  // kUnsupported for a construct Topknot lacks; kOutOfRange over a bound of limits.h. Errors name
  // line and column.
  static Result<Template> parse(std::string_view source, std::string name);

  // `variables` is an object; its order of keys is kept. kInvalidArgument when the template fails
  // on them, with the text of raise_exception() if it said so; kOutOfRange over a limit.
  Result<Rendered> render(const nlohmann::ordered_json& variables,
                          const RenderOptions& options = {}) const;

  const std::string& name() const;
  // Whether the source reads a variable of this name anywhere.
  bool mentions(const std::string& variable) const;

 private:
  explicit Template(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
  std::shared_ptr<const Program> program_;
};

}  // namespace topknot::chat
