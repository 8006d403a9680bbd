// JSON into values. Back again is the filter `tojson` (filters.h).
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "chat/runtime.h"

namespace topknot::chat {

// Strings become untrusted, unless `trusted`. Invalid UTF-8 becomes U+FFFD. Fails with kOutOfRange
// on integers over 64 bits and on nesting over kMaxValueDepth.
Value from_json(Runtime& runtime, const nlohmann::ordered_json& json, bool trusted);

// The same for a list of messages: a `role` that is one of the usual names is trusted, since
// templates build markers from it, as in '<|' + message.role + '|>', and the fixed names cannot
// carry an attack.
Value messages_from_json(Runtime& runtime, const nlohmann::ordered_json& json);

bool is_usual_role(std::string_view role);

}  // namespace topknot::chat
