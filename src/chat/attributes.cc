// value.name and value[key].
#include "chat/ast.h"
#include "chat/macro.h"
#include "chat/operators.h"
#include "chat/unicode.h"

namespace topknot::chat {
namespace {

Value missing(const Value& value, std::string_view name) {
  return Value::undefined(cat("a ", type_name(value), " has no attribute '", printable(name), "'"));
}

// An index into the sequence, or nothing when it is outside.
std::optional<size_t> resolve_index(int64_t index, size_t length) {
  const auto count = static_cast<int64_t>(length);
  if (index < 0) index += count;
  if (index < 0 || index >= count) return std::nullopt;
  return static_cast<size_t>(index);
}

Value loop_attribute(Runtime& runtime, const Value& self, std::string_view name) {
  const LoopState& loop = *self.get<std::shared_ptr<LoopState>>();
  const auto length = static_cast<int64_t>(loop.items.size());
  // After the loop `index` stands behind the last item; jinja2's stays on it.
  const int64_t index =
      std::min(static_cast<int64_t>(loop.index), std::max<int64_t>(length - 1, 0));
  if (name == "index") return Value(index + 1);
  if (name == "index0") return Value(index);
  if (name == "revindex") return Value(length - index);
  if (name == "revindex0") return Value(length - index - 1);
  if (name == "first") return Value(index == 0);
  if (name == "last") return Value(index + 1 == length);
  if (name == "length") return Value(length);
  if (name == "depth") return Value(int64_t{1});
  if (name == "depth0") return Value(int64_t{0});
  if (name == "previtem") {
    return index > 0 ? loop.items[static_cast<size_t>(index - 1)]
                     : Value::undefined("there is no previous item");
  }
  if (name == "nextitem") {
    return index + 1 < length ? loop.items[static_cast<size_t>(index + 1)]
                              : Value::undefined("there is no next item");
  }
  (void)runtime;
  return missing(self, name);
}

Value macro_attribute(Runtime& runtime, const Value& self, std::string_view name) {
  const MacroDefinition& definition = *self.get<std::shared_ptr<const Macro>>()->definition;
  if (name == "name") {
    return definition.name.empty() ? Value(None{}) : runtime.string(definition.name, true);
  }
  if (name == "catch_kwargs") return Value(definition.uses_kwargs);
  if (name == "catch_varargs") return Value(definition.uses_varargs);
  if (name == "caller") return Value(definition.uses_caller);
  if (name != "arguments") return missing(self, name);
  std::vector<Value> names;
  for (const auto& parameter : definition.parameters)
    names.push_back(runtime.string(parameter.second, true));
  return runtime.tuple(std::move(names));
}

// Attributes proper, without the fall back to items.
std::optional<Value> own_attribute(Runtime& runtime, const Value& value, std::string_view name) {
  switch (find_method(value, name)) {
    case MethodState::kCallable: return runtime.method(value, name);
    case MethodState::kForbidden: {
      Value refused =
          Value::undefined(cat("access to '", name, "' of a ", type_name(value), " is not safe"));
      return refused;
    }
    case MethodState::kAbsent: break;
  }
  switch (value.kind()) {
    case Kind::kNamespace: {
      const Value* held = value.get<Namespace*>()->find(name);
      return held == nullptr ? std::nullopt : std::optional<Value>(*held);
    }
    case Kind::kLoop: return loop_attribute(runtime, value, name);
    case Kind::kMacro: return macro_attribute(runtime, value, name);
    case Kind::kCycler:
      if (name == "current") {
        const Cycler& cycler = *value.get<std::shared_ptr<Cycler>>();
        return cycler.items[cycler.next];
      }
      return std::nullopt;
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
      for (const std::string_view known :
           {"real", "imag", "numerator", "denominator", "bit_length", "bit_count", "conjugate",
            "as_integer_ratio", "is_integer", "hex", "to_bytes"}) {
        if (name == known) fail_unsupported("the attribute '", name, "' of a number");
      }
      return std::nullopt;
    default: return std::nullopt;
  }
}

std::optional<Value> own_item(Runtime& runtime, const Value& value, const Value& key) {
  switch (value.kind()) {
    case Kind::kDict: {
      if (key.is(Kind::kDict) ||
          (key.is(Kind::kSequence) && key.sequence().flavor != Flavor::kTuple))
        return std::nullopt;
      const Value* held = value.dict().find(key, &runtime.ledger);
      return held == nullptr ? std::nullopt : std::optional<Value>(*held);
    }
    case Kind::kSequence: {
      const Flavor flavor = value.sequence().flavor;
      if (!key.is_integral() || flavor == Flavor::kKeys || flavor == Flavor::kValues ||
          flavor == Flavor::kItems) {
        return std::nullopt;
      }
      const auto index = resolve_index(key.integer(), value.sequence().items.size());
      return index ? std::optional<Value>(value.sequence().items[*index]) : std::nullopt;
    }
    case Kind::kString: {
      if (!key.is_integral()) return std::nullopt;
      const std::string& bytes = value.bytes();
      runtime.ledger.step(bytes.size() / kTextBytesPerStep);
      const auto index = resolve_index(key.integer(), code_point_count(bytes));
      if (!index) return std::nullopt;
      const size_t begin = code_point_offset(bytes, *index);
      size_t end = begin;
      next_code_point(bytes, &end);
      return runtime.string(value.text().slice(begin, end));
    }
    default: return std::nullopt;
  }
}

}  // namespace

Value get_attribute(Runtime& runtime, const Value& value, std::string_view name) {
  if (value.is_undefined()) fail_value(undefined_reason(value));
  if (auto held = own_attribute(runtime, value, name)) return std::move(*held);
  if (value.is(Kind::kDict)) {
    if (const Value* held = value.dict().find(name)) return *held;
  }
  return missing(value, name);
}

Value get_item(Runtime& runtime, const Value& value, const Value& key) {
  if (value.is_undefined()) fail_value(undefined_reason(value));
  if (auto held = own_item(runtime, value, key)) return std::move(*held);
  if (key.is_string()) {
    if (auto held = own_attribute(runtime, value, key.bytes())) return std::move(*held);
    return missing(value, key.bytes());
  }
  return Value::undefined(cat("a ", type_name(value), " has no such element"));
}

}  // namespace topknot::chat
