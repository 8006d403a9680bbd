// Filters of sequences.
#include <algorithm>
#include <charconv>
#include <numeric>

#include "chat/filters.h"
#include "chat/operators.h"
#include "chat/predicates.h"

namespace topknot::chat {
namespace {

// "a.b.0": what `attribute=` names. Parts of digits are indices.
class AttributePath {
 public:
  AttributePath() = default;
  AttributePath(Runtime& runtime, const Value& attribute) {
    if (attribute.is_none()) return;
    if (!attribute.is_string()) {
      parts_.push_back(attribute);
      return;
    }
    const Text& text = attribute.text();
    for (size_t begin = 0; begin <= text.size();) {
      const size_t dot = std::min(text.bytes().find('.', begin), text.size());
      parts_.push_back(part(runtime, text.slice(begin, dot)));
      begin = dot + 1;
    }
  }

  Value of(Runtime& runtime, Value item, const Value* fallback = nullptr) const {
    for (const Value& part : parts_) {
      item = get_item(runtime, item, part);
      if (fallback != nullptr && item.is_undefined()) item = *fallback;
    }
    return item;
  }

 private:
  static Value part(Runtime& runtime, const Text& text) {
    int64_t index = 0;
    const std::string& bytes = text.bytes();
    const auto result = std::from_chars(bytes.data(), bytes.data() + bytes.size(), index);
    const bool digits = !bytes.empty() && bytes[0] != '-' && result.ec == std::errc() &&
                        result.ptr == bytes.data() + bytes.size();
    return digits ? Value(index) : runtime.string(text);
  }

  std::vector<Value> parts_;
};

Value ignore_case(Runtime& runtime, const Value& value) {
  return value.is_string() ? runtime.string(map_characters(runtime, value.text(), false)) : value;
}

bool flag(const Value* value) { return value != nullptr && truth(*value); }

// Items an iterator yields until `make` fails; the failure waits for whoever asks for the next
// item. A limit is not a Python error that a template might never reach: it ends the rendering at
// once.
template <class Make>
Value generate(Runtime& runtime, const Value& from, Make&& make) {
  std::vector<Value> out;
  try {
    for (const Value& item : runtime.items_of(from)) {
      runtime.ledger.step();
      make(item, &out);
    }
  } catch (Failure& failure) {
    if (failure.error.code == Code::kOutOfRange) throw;
    return runtime.iterator(std::move(out), std::move(failure));
  }
  return runtime.iterator(std::move(out));
}

using Order = std::vector<size_t>;

// Indices of `keys` in ascending order, stable; descending keeps equal keys in their order, too.
Order sorted_order(Runtime& runtime, const std::vector<Value>& keys, bool descending) {
  Order order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return descending ? less(keys[b], keys[a], &runtime.ledger)
                      : less(keys[a], keys[b], &runtime.ledger);
  });
  return order;
}

Value extreme(Runtime& runtime, const Value& value, const Arguments& arguments, bool largest) {
  const auto bound = bind(arguments, {"case_sensitive", "attribute"},
                          largest ? "the filter 'max'" : "the filter 'min'");
  const AttributePath path =
      bound[1] == nullptr ? AttributePath() : AttributePath(runtime, *bound[1]);
  const std::vector<Value> items = runtime.items_of(value);
  if (items.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  const auto key_of = [&](const Value& item) {
    const Value key = path.of(runtime, item);
    return flag(bound[0]) ? key : ignore_case(runtime, key);
  };
  size_t best = 0;
  Value best_key = key_of(items[0]);
  for (size_t i = 1; i < items.size(); ++i) {
    Value key = key_of(items[i]);
    if (!(largest ? less(best_key, key, &runtime.ledger) : less(key, best_key, &runtime.ledger)))
      continue;
    best = i;
    best_key = std::move(key);
  }
  return items[best];
}

Value choose(Runtime& runtime, const Value& value, const Arguments& arguments, bool by_attribute,
             bool keep) {
  if (!truth(value)) return runtime.iterator({});
  const auto& given = arguments.positional;
  return [&] {
    const size_t test_at = by_attribute ? 1 : 0;
    try {
      if (given.size() < test_at) fail_value("this filter needs the name of an attribute");
      const PredicateEntry* predicate = nullptr;
      Arguments rest;
      if (given.size() > test_at) {
        const std::string& name = text_argument(given[test_at], "the test").bytes();
        predicate = find_predicate(name);
        if (predicate == nullptr) fail_unsupported("the test '", printable(name), "'");
        rest.positional.assign(given.begin() + static_cast<ptrdiff_t>(test_at) + 1, given.end());
        rest.keywords = arguments.keywords;
      }
      const AttributePath path = by_attribute ? AttributePath(runtime, given[0]) : AttributePath();
      return generate(runtime, value, [&](const Value& item, std::vector<Value>* out) {
        const Value subject = path.of(runtime, item);
        const bool holds = predicate == nullptr
                               ? truth(subject)
                               : apply_predicate(runtime, *predicate, subject, rest);
        if (holds == keep) out->push_back(item);
      });
    } catch (Failure& failure) {
      if (failure.error.code == Code::kOutOfRange) throw;
      return runtime.iterator({}, std::move(failure));
    }
  }();
}

}  // namespace

Value filter_first(Runtime& runtime, const Value& value, const Arguments& arguments) {
  bind(arguments, {}, "the filter 'first'");
  if (value.is(Kind::kIterator)) {
    Iterator& iterator = *value.get<std::shared_ptr<Iterator>>();
    if (iterator.next < iterator.items.size()) return iterator.items[iterator.next++];
    if (iterator.failure) throw *iterator.failure;
    return Value::undefined("No first item, sequence was empty.");
  }
  if (value.is_string()) return get_item(runtime, value, Value(int64_t{0}));
  const std::vector<Value> items = runtime.items_of(value);
  return items.empty() ? Value::undefined("No first item, sequence was empty.") : items.front();
}

Value filter_last(Runtime& runtime, const Value& value, const Arguments& arguments) {
  bind(arguments, {}, "the filter 'last'");
  if (value.is(Kind::kIterator)) fail_value("a generator has no last item");
  if (value.is_string()) return get_item(runtime, value, Value(int64_t{-1}));
  const std::vector<Value> items = runtime.items_of(value);
  return items.empty() ? Value::undefined("No last item, sequence was empty.") : items.back();
}

Value filter_list(Runtime& runtime, const Value& value, const Arguments& arguments) {
  bind(arguments, {}, "the filter 'list'");
  return runtime.list(runtime.items_of(value));
}

Value filter_reverse(Runtime& runtime, const Value& value, const Arguments& arguments) {
  bind(arguments, {}, "the filter 'reverse'");
  if (value.is_string())
    return get_slice(runtime, value, Value(None{}), Value(None{}), Value(int64_t{-1}));
  std::vector<Value> items = runtime.items_of(value);
  std::reverse(items.begin(), items.end());
  if (value.is(Kind::kIterator)) return runtime.list(std::move(items));
  return runtime.iterator(std::move(items));
}

Value filter_items(Runtime& runtime, const Value& value, const Arguments& arguments) {
  bind(arguments, {}, "the filter 'items'");
  if (value.is_undefined()) return runtime.iterator({});
  std::vector<Value> pairs;
  if (!value.is(Kind::kDict)) {
    try {
      fail_value("'items' needs a mapping, not a ", type_name(value));
    } catch (Failure& failure) {
      return runtime.iterator({}, std::move(failure));
    }
  }
  for (const auto& [key, item] : value.dict().entries) pairs.push_back(runtime.tuple({key, item}));
  return runtime.iterator(std::move(pairs));
}

Value filter_join(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = bind(arguments, {"d", "attribute"}, "the filter 'join'");
  const Text separator = bound[0] == nullptr ? Text() : runtime.to_text(*bound[0]);
  const bool by_attribute = bound[1] != nullptr && !bound[1]->is_none();
  const AttributePath path = by_attribute ? AttributePath(runtime, *bound[1]) : AttributePath();
  Text out;
  bool first = true;
  for (const Value& item : runtime.items_of(value)) {
    if (!first) out.append(separator);
    first = false;
    runtime.ledger.step(1 + separator.size() / kTextBytesPerStep);
    out.append(runtime.to_text(path.of(runtime, item)));
    if (out.size() > kMaxStringBytes)
      fail_limit("a string would be longer than ", human_bytes(kMaxStringBytes));
  }
  return runtime.string(std::move(out));
}

Value filter_sort(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound =
      bind(arguments, {"reverse", "case_sensitive", "attribute"}, "the filter 'sort'");
  std::vector<AttributePath> paths;
  if (bound[2] != nullptr && bound[2]->is_string()) {
    const Text& names = bound[2]->text();
    for (size_t begin = 0; begin <= names.size();) {
      const size_t comma = std::min(names.bytes().find(',', begin), names.size());
      paths.emplace_back(runtime, runtime.string(names.slice(begin, comma)));
      begin = comma + 1;
    }
  } else {
    paths.push_back(bound[2] == nullptr ? AttributePath() : AttributePath(runtime, *bound[2]));
  }
  const std::vector<Value> items = runtime.items_of(value);
  std::vector<Value> keys;
  for (const Value& item : items) {
    std::vector<Value> key;
    for (const AttributePath& path : paths) {
      const Value part = path.of(runtime, item);
      key.push_back(flag(bound[1]) ? part : ignore_case(runtime, part));
    }
    keys.push_back(runtime.list(std::move(key)));
  }
  std::vector<Value> out;
  for (const size_t i : sorted_order(runtime, keys, flag(bound[0]))) out.push_back(items[i]);
  return runtime.list(std::move(out));
}

Value filter_dictsort(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = bind(arguments, {"case_sensitive", "by", "reverse"}, "the filter 'dictsort'");
  const std::string by = bound[1] == nullptr ? "key" : text_argument(*bound[1], "by").bytes();
  if (by != "key" && by != "value") fail_value("'dictsort' sorts by 'key' or 'value'");
  if (!value.is(Kind::kDict)) fail_value("'dictsort' needs a mapping, not a ", type_name(value));
  const auto& entries = value.dict().entries;
  std::vector<Value> keys;
  for (const auto& [key, item] : entries) {
    const Value& part = by == "key" ? key : item;
    keys.push_back(flag(bound[0]) ? part : ignore_case(runtime, part));
  }
  std::vector<Value> out;
  for (const size_t i : sorted_order(runtime, keys, flag(bound[2]))) {
    out.push_back(runtime.tuple({entries[i].first, entries[i].second}));
  }
  return runtime.list(std::move(out));
}

Value filter_unique(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = bind(arguments, {"case_sensitive", "attribute"}, "the filter 'unique'");
  const AttributePath path =
      bound[1] == nullptr ? AttributePath() : AttributePath(runtime, *bound[1]);
  Dict seen;
  return generate(runtime, value, [&](const Value& item, std::vector<Value>* out) {
    Value key = path.of(runtime, item);
    if (!flag(bound[0])) key = ignore_case(runtime, key);
    require_hashable(key);
    if (seen.find(key, &runtime.ledger) != nullptr) return;
    seen.set(std::move(key), Value(true), &runtime.ledger);
    out->push_back(item);
  });
}

Value filter_min(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return extreme(runtime, value, arguments, false);
}

Value filter_max(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return extreme(runtime, value, arguments, true);
}

Value filter_sum(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = bind(arguments, {"attribute", "start"}, "the filter 'sum'");
  const bool by_attribute = bound[0] != nullptr && !bound[0]->is_none();
  const AttributePath path = by_attribute ? AttributePath(runtime, *bound[0]) : AttributePath();
  Value total = bound[1] != nullptr ? *bound[1] : Value(int64_t{0});
  if (total.is_string()) fail_value("'sum' does not take strings");
  for (const Value& item : runtime.items_of(value)) {
    runtime.ledger.step();
    total = arithmetic(runtime, Arithmetic::kAdd, total, path.of(runtime, item));
  }
  return total;
}

Value filter_batch(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = bind(arguments, {"linecount", "fill_with"}, "the filter 'batch'", 1);
  const int64_t size = integer_argument(bound[0], 0, "linecount");
  std::vector<Value> rows;
  std::vector<Value> row;
  for (const Value& item : runtime.items_of(value)) {
    if (static_cast<int64_t>(row.size()) == size)
      rows.push_back(runtime.list(std::exchange(row, {})));
    row.push_back(item);
  }
  if (!row.empty()) {
    const bool fill = bound[1] != nullptr && !bound[1]->is_none();
    if (fill && size > static_cast<int64_t>(kMaxItems))
      fail_limit("a list would have more than ", kMaxItems, " items");
    while (fill && static_cast<int64_t>(row.size()) < size) row.push_back(*bound[1]);
    rows.push_back(runtime.list(std::move(row)));
  }
  return runtime.iterator(std::move(rows));
}

Value filter_map(Runtime& runtime, const Value& value, const Arguments& arguments) {
  if (!truth(value)) return runtime.iterator({});
  const auto& keywords = arguments.keywords;
  const bool by_attribute = arguments.positional.empty() &&
                            std::any_of(keywords.begin(), keywords.end(),
                                        [](const auto& k) { return k.first == "attribute"; });
  try {
    if (by_attribute) {
      const auto bound = bind(arguments, {"attribute", "default"}, "the filter 'map'");
      const AttributePath path(runtime, *bound[0]);
      const Value* fallback = bound[1] != nullptr && !bound[1]->is_none() ? bound[1] : nullptr;
      return generate(runtime, value, [&](const Value& item, std::vector<Value>* out) {
        out->push_back(path.of(runtime, item, fallback));
      });
    }
    if (arguments.positional.empty()) fail_value("'map' needs a filter or an attribute");
    const std::string& name = text_argument(arguments.positional[0], "the filter").bytes();
    const FilterEntry* filter = find_filter(name);
    if (filter == nullptr) fail_unsupported("the filter '", printable(name), "'");
    if (name == "map") fail_unsupported("'map' of 'map'");  // it would recurse without a bound
    Arguments rest;
    rest.positional.assign(arguments.positional.begin() + 1, arguments.positional.end());
    rest.keywords = keywords;
    return generate(runtime, value, [&](const Value& item, std::vector<Value>* out) {
      out->push_back(filter->apply(runtime, item, rest));
    });
  } catch (Failure& failure) {
    if (failure.error.code == Code::kOutOfRange || failure.error.code == Code::kUnsupported) throw;
    return runtime.iterator({}, std::move(failure));
  }
}

Value filter_select(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return choose(runtime, value, arguments, false, true);
}
Value filter_reject(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return choose(runtime, value, arguments, false, false);
}
Value filter_selectattr(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return choose(runtime, value, arguments, true, true);
}
Value filter_rejectattr(Runtime& runtime, const Value& value, const Arguments& arguments) {
  return choose(runtime, value, arguments, true, false);
}

}  // namespace topknot::chat
