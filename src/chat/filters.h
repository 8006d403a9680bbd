// `value | name(arguments)`: jinja2's filters, as far as chat templates use them.
#pragma once

#include <string_view>

#include "chat/runtime.h"

namespace topknot::chat {

struct FilterEntry {
  std::string_view name;
  Value (*apply)(Runtime& runtime, const Value& value, const Arguments& arguments);
};

const FilterEntry* find_filter(std::string_view name);  // null when there is none

// json.dumps with the arguments transformers' `tojson` takes. Structure and numbers are untrusted,
// strings keep their provenance.
Value filter_tojson(Runtime& runtime, const Value& value, const Arguments& arguments);

// filters_sequence.cc
Value filter_batch(Runtime& runtime, const Value& value, const Arguments& arguments);
Value filter_dictsort(Runtime& runtime, const Value& value, const Arguments& arguments);
Value filter_first(Runtime& runtime, const Value& value, const Arguments& arguments);
Value filter_items(Runtime& runtime, const Value& value, const Arguments& arguments);
Value filter_join(Runtime& runtime, const Value& value, const Arguments& arguments);
Value filter_last(Runtime& runtime, const Value& value, const Arguments& arguments);
Value filter_list(Runtime& runtime, const Value& value, const Arguments& arguments);
Value filter_map(Runtime& runtime, const Value& value, const Arguments& arguments);
Value filter_max(Runtime& runtime, const Value& value, const Arguments& arguments);
Value filter_min(Runtime& runtime, const Value& value, const Arguments& arguments);
Value filter_reject(Runtime& runtime, const Value& value, const Arguments& arguments);
Value filter_rejectattr(Runtime& runtime, const Value& value, const Arguments& arguments);
Value filter_reverse(Runtime& runtime, const Value& value, const Arguments& arguments);
Value filter_select(Runtime& runtime, const Value& value, const Arguments& arguments);
Value filter_selectattr(Runtime& runtime, const Value& value, const Arguments& arguments);
Value filter_sort(Runtime& runtime, const Value& value, const Arguments& arguments);
Value filter_sum(Runtime& runtime, const Value& value, const Arguments& arguments);
Value filter_unique(Runtime& runtime, const Value& value, const Arguments& arguments);

}  // namespace topknot::chat
