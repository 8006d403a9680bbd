#include "chat/template.h"

#include <algorithm>
#include <ctime>
#include <new>

#include "chat/ast.h"
#include "chat/interpreter.h"
#include "chat/json.h"
#include "chat/parser.h"

namespace topknot::chat {
namespace {

std::tm local_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  return parts;
}

Error out_of_memory(const std::string& name) {
  return Error{.code = Code::kResource,
               .what = "out of memory in the chat template",
               .where = name,
               .why = {},
               .fix = {}};
}

Rendered to_segments(const Text& text) {
  Rendered out;
  size_t begin = 0;
  for (const Text::Run& run : text.runs()) {
    out.segments.push_back({text.bytes().substr(begin, run.end - begin), run.trusted});
    begin = run.end;
  }
  return out;
}

}  // namespace

std::string Rendered::text() const {
  std::string out;
  for (const Segment& segment : segments) out += segment.text;
  return out;
}

Result<Template> Template::parse(std::string_view source, std::string name) {
  try {
    return Template(std::make_shared<const Program>(parse_program(std::string(source), name)));
  } catch (Failure& failure) {
    Error& error = failure.error;
    error.where = error.where.empty() ? name : cat(name, ", ", error.where);
    return std::move(error);
  } catch (const std::bad_alloc&) {
    return out_of_memory(name);
  }
}

Result<Rendered> Template::render(const nlohmann::ordered_json& variables,
                                  const RenderOptions& options) const {
  if (!variables.is_object()) {
    return Error{.code = Code::kInvalidArgument,
                 .what = "the variables of a chat template are not an object",
                 .where = program_->name,
                 .why = cat("found a ", variables.type_name()),
                 .fix = "pass an object"};
  }
  Position at;
  try {
    Runtime runtime(options.limits, options.clock ? options.clock : local_now);
    Interpreter interpreter(*program_, &runtime);
    try {
      for (const auto& [key, value] : variables.items()) {
        if (!mentions(key)) continue;
        const bool trusted =
            std::find(options.trusted_variables.begin(), options.trusted_variables.end(), key) !=
            options.trusted_variables.end();
        const bool messages = key == options.messages_variable && value.is_array();
        interpreter.set_variable(key, messages ? messages_from_json(runtime, value)
                                               : from_json(runtime, value, trusted));
      }
      return to_segments(interpreter.render());
    } catch (Failure&) {
      at = interpreter.position();
      throw;
    }
  } catch (Failure& failure) {
    failure.error.where = cat(program_->name, ", line ", at.line, ", column ", at.column);
    return std::move(failure.error);
  } catch (const std::bad_alloc&) {
    return out_of_memory(program_->name);
  }
}

const std::string& Template::name() const { return program_->name; }

bool Template::mentions(const std::string& variable) const {
  return program_->symbol_of.contains(variable);
}

}  // namespace topknot::chat
