// Python's operators and attribute lookup over Values.
#pragma once

#include <string_view>

#include "chat/ast.h"

namespace topknot::chat {

Value arithmetic(Runtime& runtime, Arithmetic op, const Value& a, const Value& b);
Value negate(const Value& value);
bool compare(Runtime& runtime, Comparison op, const Value& a, const Value& b);
bool contains(Runtime& runtime, const Value& container, const Value& item);

// value.name and value[key], each falling back to the other as jinja2 does; undefined when neither
// is there.
Value get_attribute(Runtime& runtime, const Value& value, std::string_view name);
Value get_item(Runtime& runtime, const Value& value, const Value& key);
// value[start:stop:step]; absent bounds are none.
Value get_slice(Runtime& runtime, const Value& value, const Value& start, const Value& stop,
                const Value& step);

// methods.cc: value.name(arguments) for the methods of str, list, dict, loop, cycler.
Value call_method(Runtime& runtime, const Value& self, std::string_view name,
                  const Arguments& arguments);
enum class MethodState : uint8_t {
  kAbsent,
  kCallable,
  kForbidden
};  // kForbidden: it would modify the value
MethodState find_method(const Value& value, std::string_view name);

// format.cc: format % values, and str.format.
Value format_percent(Runtime& runtime, const Text& format, const Value& values);
Value format_braces(Runtime& runtime, const Text& format, const Arguments& arguments);

// Text helpers that filters and methods share.
Text escape_html(const Text& text);
Text strip_text(const Text& text, const Text* characters, bool left, bool right);
Text replace_text(Runtime& runtime, const Text& text, const Text& old, const Text& with,
                  int64_t count);
Text map_characters(Runtime& runtime, const Text& text, bool upper);
Text capitalize_text(Runtime& runtime, const Text& text);
std::vector<Text> split_lines(Runtime& runtime, const Text& text, bool keep_ends);
bool is_case(const Text& text, bool upper);  // str.isupper, str.islower
// First occurrence in [begin, text.size()), in linear time; npos if none.
size_t find_bytes(std::string_view text, std::string_view needle, size_t begin);

}  // namespace topknot::chat
