// Calls: macros and the global functions.
#include <algorithm>
#include <ctime>

#include "chat/interpreter.h"
#include "chat/operators.h"

namespace topknot::chat {
namespace {

std::optional<Value> take_keyword(Arguments* arguments, std::string_view name) {
  auto& keywords = arguments->keywords;
  const auto found = std::find_if(keywords.begin(), keywords.end(),
                                  [name](const auto& keyword) { return keyword.first == name; });
  if (found == keywords.end()) return std::nullopt;
  Value value = std::move(found->second);
  keywords.erase(found);
  return value;
}

}  // namespace

Value Interpreter::call(const Value& callee, Arguments arguments) {
  switch (callee.kind()) {
    case Kind::kMacro:
      return call_macro(*callee.get<std::shared_ptr<const Macro>>(), std::move(arguments));
    case Kind::kBuiltin: return call_builtin(callee.get<Builtin>(), arguments);
    case Kind::kMethod: {
      const auto& method = *callee.get<std::shared_ptr<const Method>>();
      return call_method(runtime_, method.self, method.name, arguments);
    }
    case Kind::kJoiner: {
      Joiner& joiner = *callee.get<std::shared_ptr<Joiner>>();
      bind(arguments, {}, "a joiner");
      return std::exchange(joiner.used, true) ? joiner.separator : runtime_.empty_string();
    }
    case Kind::kUndefined: fail_value(undefined_reason(callee));
    case Kind::kLoop: fail_value("`loop` can be called in recursive loops only");
    default: fail_value("a ", type_name(callee), " cannot be called");
  }
}

Value Interpreter::call_macro(const Macro& macro, Arguments arguments) {
  const Depth depth(this);
  const MacroDefinition& definition = *macro.definition;
  const ScopePtr outer = scope_;
  auto inner = std::make_shared<Scope>();
  inner->parent = macro.scope->shared_from_this();
  scope_ = std::move(inner);
  bind_parameters(definition, &arguments);
  bind_specials(definition, &arguments);
  Value text;
  {
    Capture capture(this);
    run_body(definition.body);
    text = runtime_.string(capture.text);
  }
  scope_ = outer;
  return text;
}

void Interpreter::bind_parameters(const MacroDefinition& definition, Arguments* arguments) {
  const size_t count = definition.parameters.size();
  const size_t required = count - definition.defaults.size();
  const size_t given = std::min(count, arguments->positional.size());
  std::vector<size_t> missing;
  for (size_t i = 0; i < count; ++i) {
    const auto& [symbol, name] = definition.parameters[i];
    if (i < given) {
      set_symbol(symbol, std::move(arguments->positional[i]));
    } else if (auto value = take_keyword(arguments, name)) {
      set_symbol(symbol, std::move(*value));
    } else {
      missing.push_back(i);
      set_symbol(symbol, Value::undefined(cat("parameter '", name, "' was not provided")));
    }
  }
  arguments->positional.erase(arguments->positional.begin(),
                              arguments->positional.begin() + static_cast<ptrdiff_t>(given));
  for (const size_t i : missing) {  // a default sees the parameters before it
    if (i >= required)
      set_symbol(definition.parameters[i].first, evaluate(*definition.defaults[i - required]));
  }
}

void Interpreter::bind_specials(const MacroDefinition& definition, Arguments* arguments) {
  const auto set_special = [this](const char* name, Value value) {
    const auto found = program_.symbol_of.find(name);
    if (found != program_.symbol_of.end()) set_symbol(found->second, std::move(value));
  };
  const bool declared =
      std::any_of(definition.parameters.begin(), definition.parameters.end(),
                  [](const auto& parameter) { return parameter.second == "caller"; });
  if (definition.uses_caller && !declared) {
    auto caller = take_keyword(arguments, "caller");
    set_special("caller", caller ? std::move(*caller) : Value::undefined("No caller defined"));
  }
  const std::string name =
      definition.name.empty() ? "the call block" : cat("macro '", definition.name, "'");
  if (definition.uses_kwargs) {
    auto dict = std::make_shared<Dict>();
    for (auto& [key, value] : arguments->keywords) {
      dict->set(runtime_.string(key, true), std::move(value), &runtime_.ledger);
    }
    set_special("kwargs", runtime_.dict(std::move(dict)));
  } else if (!arguments->keywords.empty()) {
    fail_value(name, " takes no keyword argument '", arguments->keywords[0].first, "'");
  }
  if (definition.uses_varargs) {
    set_special("varargs", runtime_.tuple(std::move(arguments->positional)));
  } else if (!arguments->positional.empty()) {
    fail_value(name, " takes at most ", definition.parameters.size(), " arguments");
  }
}

Value Interpreter::call_builtin(Builtin builtin, const Arguments& arguments) {
  switch (builtin) {
    case Builtin::kRange: return call_range(arguments);
    case Builtin::kNamespace: return call_namespace(arguments);
    case Builtin::kDict: return call_dict(arguments);
    case Builtin::kStrftimeNow: return call_strftime(arguments);
    case Builtin::kRaiseException: {
      const auto bound = bind(arguments, {"message"}, "raise_exception()", 1);
      fail(Code::kInvalidArgument, printable(runtime_.to_text(*bound[0]).bytes(), 2000),
           "the chat template refused these messages with raise_exception()",
           "change the messages as the template asks");
    }
    case Builtin::kCycler: {
      if (!arguments.keywords.empty() || arguments.positional.empty())
        fail_value("cycler() needs its items");
      auto cycler = std::make_shared<Cycler>();
      uint32_t inner = 0;
      for (const Value& item : arguments.positional) inner = std::max(inner, item.depth());
      runtime_.adopt(cycler.get(), sizeof(Cycler) + arguments.positional.size() * sizeof(Value),
                     inner);
      cycler->items = arguments.positional;
      return Value(std::move(cycler));
    }
    case Builtin::kJoiner: {
      const auto bound = bind(arguments, {"sep"}, "joiner()");
      auto joiner = std::make_shared<Joiner>();
      joiner->separator = bound[0] != nullptr ? *bound[0] : runtime_.string(", ", true);
      runtime_.adopt(joiner.get(), sizeof(Joiner), joiner->separator.depth());
      return Value(std::move(joiner));
    }
  }
  return {};
}

Value Interpreter::call_range(const Arguments& arguments) {
  const auto& given = arguments.positional;
  if (!arguments.keywords.empty() || given.empty() || given.size() > 3)
    fail_value("range() takes 1 to 3 integers");
  const auto at = [&given](size_t i) { return integer_argument(&given[i], 0, "range()"); };
  if (given.size() == 1) return runtime_.range(0, at(0), 1);
  return runtime_.range(at(0), at(1), given.size() == 3 ? at(2) : 1);
}

Value Interpreter::call_dict(const Arguments& arguments) {
  if (arguments.positional.size() > 1) fail_value("dict() takes one mapping");
  auto dict = std::make_shared<Dict>();
  if (!arguments.positional.empty()) {
    const Value& from = arguments.positional[0];
    if (from.is_undefined()) fail_value(undefined_reason(from));
    if (from.is(Kind::kDict)) {
      for (const auto& [key, value] : from.dict().entries) dict->set(key, value, &runtime_.ledger);
    } else {
      for (const Value& pair : runtime_.items_of(from)) {
        const std::vector<Value> both = runtime_.items_of(pair);
        if (both.size() != 2) fail_value("dict() needs pairs");
        require_hashable(both[0]);
        dict->set(both[0], both[1], &runtime_.ledger);
      }
    }
  }
  for (const auto& [name, value] : arguments.keywords)
    dict->set(runtime_.string(name, true), value, &runtime_.ledger);
  return runtime_.dict(std::move(dict));
}

Value Interpreter::call_namespace(const Arguments& arguments) {
  const Value made = call_dict(arguments);
  const Value space = runtime_.make_namespace();
  runtime_.ledger.acquire(made.dict().entries.size() * (sizeof(Value) + sizeof(std::string)));
  for (const auto& [key, value] : made.dict().entries) {
    space.get<Namespace*>()->attributes.emplace_back(
        text_argument(key, "a namespace's attribute").bytes(), value);
  }
  return space;
}

Value Interpreter::call_strftime(const Arguments& arguments) {
  const auto bound = bind(arguments, {"format"}, "strftime_now()", 1);
  const Text& format = text_argument(*bound[0], "format");
  if (format.size() > 200) fail_limit("a strftime_now() format over 200 bytes");
  static constexpr std::string_view kKnown = "aAbBcdHIjmMpSUwWxXyYZeFTDRGuVhnt%";
  for (size_t i = 0; i < format.size(); ++i) {
    if (format.bytes()[i] != '%') continue;
    if (++i >= format.size() || kKnown.find(format.bytes()[i]) == std::string_view::npos) {
      fail_unsupported("strftime_now() with the directive '%",
                       printable(format.bytes().substr(i, 1)), "'");
    }
  }
  const std::tm now = runtime_.clock();
  char buffer[8192];
  const std::string padded = format.bytes() + "x";  // strftime answers 0 for an empty result, too
  const size_t size = std::strftime(buffer, sizeof(buffer), padded.c_str(), &now);
  if (size == 0) fail_limit("a strftime_now() result over ", sizeof(buffer), " bytes");
  return runtime_.string(to_valid_utf8(std::string_view(buffer, size - 1)), format.all_trusted());
}

}  // namespace topknot::chat
