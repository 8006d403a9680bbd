#include "chat/predicates.h"

#include <algorithm>
#include <cmath>

#include "chat/filters.h"
#include "chat/operators.h"

namespace topknot::chat {
namespace {

bool remainder_is(Runtime& runtime, const Value& value, const Value& divisor, int64_t rest) {
  return equal(arithmetic(runtime, Arithmetic::kModulo, value, divisor), Value(rest),
               &runtime.ledger);
}

bool is_sequence(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kDict: return true;
    case Kind::kSequence: {
      const Flavor flavor = value.sequence().flavor;
      return flavor == Flavor::kList || flavor == Flavor::kTuple || flavor == Flavor::kRange;
    }
    default: return false;
  }
}

bool is_callable(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:  // jinja2's Undefined has a __call__
    case Kind::kMacro:
    case Kind::kMethod:
    case Kind::kBuiltin:
    case Kind::kLoop:
    case Kind::kJoiner: return true;
    default: return false;
  }
}

// `is`: the same object. Scalars are one object for each value, as small ones are in Python.
bool is_same(Runtime& runtime, const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.identity() != nullptr && a.identity() == b.identity()) return true;
  switch (a.kind()) {
    case Kind::kNone: return true;
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kBuiltin:
    case Kind::kString: return equal(a, b, &runtime.ledger);
    default: return false;
  }
}

template <Comparison op>
bool compares(Runtime& runtime, const Value& a, const Value* b) {
  return compare(runtime, op, a, *b);
}

bool holds_kind(const Value& value, Kind kind) { return value.is(kind); }

const PredicateEntry kPredicates[] = {
    {"!=", 1, compares<Comparison::kNotEqual>},
    {"<", 1, compares<Comparison::kLess>},
    {"<=", 1, compares<Comparison::kLessEqual>},
    {"==", 1, compares<Comparison::kEqual>},
    {">", 1, compares<Comparison::kGreater>},
    {">=", 1, compares<Comparison::kGreaterEqual>},
    {"boolean", 0,
     [](Runtime&, const Value& v, const Value*) { return holds_kind(v, Kind::kBool); }},
    {"callable", 0, [](Runtime&, const Value& v, const Value*) { return is_callable(v); }},
    {"defined", 0, [](Runtime&, const Value& v, const Value*) { return !v.is_undefined(); }},
    {"divisibleby", 1,
     [](Runtime& r, const Value& v, const Value* by) { return remainder_is(r, v, *by, 0); }},
    {"eq", 1, compares<Comparison::kEqual>},
    {"equalto", 1, compares<Comparison::kEqual>},
    {"escaped", 0,
     [](Runtime&, const Value& v, const Value*) {
       return v.is_string() && v.get<std::shared_ptr<const StringObject>>()->markup;
     }},
    {"even", 0,
     [](Runtime& r, const Value& v, const Value*) {
       return remainder_is(r, v, Value(int64_t{2}), 0);
     }},
    {"false", 0,
     [](Runtime&, const Value& v, const Value*) { return v.is(Kind::kBool) && !v.get<bool>(); }},
    {"filter", 0,
     [](Runtime&, const Value& v, const Value*) {
       require_hashable(v);
       return v.is_string() && find_filter(v.bytes()) != nullptr;
     }},
    {"float", 0,
     [](Runtime&, const Value& v, const Value*) { return holds_kind(v, Kind::kFloat); }},
    {"ge", 1, compares<Comparison::kGreaterEqual>},
    {"greaterthan", 1, compares<Comparison::kGreater>},
    {"gt", 1, compares<Comparison::kGreater>},
    {"in", 1, compares<Comparison::kIn>},
    {"integer", 0,
     [](Runtime&, const Value& v, const Value*) { return holds_kind(v, Kind::kInt); }},
    {"iterable", 0, [](Runtime& r, const Value& v, const Value*) { return r.is_iterable(v); }},
    {"le", 1, compares<Comparison::kLessEqual>},
    {"lessthan", 1, compares<Comparison::kLess>},
    {"lower", 0,
     [](Runtime& r, const Value& v, const Value*) { return is_case(r.to_text(v), false); }},
    {"lt", 1, compares<Comparison::kLess>},
    {"mapping", 0,
     [](Runtime&, const Value& v, const Value*) { return holds_kind(v, Kind::kDict); }},
    {"ne", 1, compares<Comparison::kNotEqual>},
    {"none", 0, [](Runtime&, const Value& v, const Value*) { return v.is_none(); }},
    {"number", 0, [](Runtime&, const Value& v, const Value*) { return v.is_number(); }},
    {"odd", 0,
     [](Runtime& r, const Value& v, const Value*) {
       return remainder_is(r, v, Value(int64_t{2}), 1);
     }},
    {"sameas", 1,
     [](Runtime& r, const Value& v, const Value* other) { return is_same(r, v, *other); }},
    {"sequence", 0, [](Runtime&, const Value& v, const Value*) { return is_sequence(v); }},
    {"string", 0, [](Runtime&, const Value& v, const Value*) { return v.is_string(); }},
    {"test", 0,
     [](Runtime&, const Value& v, const Value*) {
       require_hashable(v);
       return v.is_string() && find_predicate(v.bytes()) != nullptr;
     }},
    {"true", 0,
     [](Runtime&, const Value& v, const Value*) { return v.is(Kind::kBool) && v.get<bool>(); }},
    {"undefined", 0, [](Runtime&, const Value& v, const Value*) { return v.is_undefined(); }},
    {"upper", 0,
     [](Runtime& r, const Value& v, const Value*) { return is_case(r.to_text(v), true); }},
};

}  // namespace

const PredicateEntry* find_predicate(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kPredicates), std::end(kPredicates),
                   [name](const PredicateEntry& entry) { return entry.name == name; });
  return found == std::end(kPredicates) ? nullptr : found;
}

bool apply_predicate(Runtime& runtime, const PredicateEntry& predicate, const Value& value,
                     const Arguments& arguments) {
  const size_t given = arguments.positional.size() + arguments.keywords.size();
  if (given != predicate.arguments) {
    fail_value("the test '", predicate.name, "' takes ", predicate.arguments, " arguments, ", given,
               " given");
  }
  if (given == 0) return predicate.holds(runtime, value, nullptr);
  if (!arguments.keywords.empty()) {
    const std::string& name = arguments.keywords[0].first;
    const bool known = (predicate.name == "divisibleby" && name == "num") ||
                       (predicate.name == "sameas" && name == "other") ||
                       (predicate.name == "in" && name == "seq");
    if (!known) fail_value("the test '", predicate.name, "' has no argument '", name, "'");
    return predicate.holds(runtime, value, &arguments.keywords[0].second);
  }
  return predicate.holds(runtime, value, &arguments.positional[0]);
}

}  // namespace topknot::chat
