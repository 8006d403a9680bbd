// `value is name(arguments)`: jinja2's tests.
#pragma once

#include <string_view>

#include "chat/runtime.h"

namespace topknot::chat {

struct PredicateEntry {
  std::string_view name;
  size_t arguments;  // taken besides the value
  bool (*holds)(Runtime& runtime, const Value& value, const Value* argument);
};

const PredicateEntry* find_predicate(std::string_view name);  // null when there is none

bool apply_predicate(Runtime& runtime, const PredicateEntry& predicate, const Value& value,
                     const Arguments& arguments);

}  // namespace topknot::chat
