// Methods of str, list, tuple, dict, loop and cycler.
#include <algorithm>

#include "chat/operators.h"
#include "chat/unicode.h"

namespace topknot::chat {
namespace {

constexpr size_t kNone = std::string_view::npos;

template <class Names>
bool one_of(std::string_view name, const Names& names) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

struct StringCall {
  Runtime& runtime;
  const Text& self;
  std::string_view name;
  const Arguments& arguments;

  std::string callee() const { return cat("str.", name, "()"); }
};

// Methods of one optional argument that may be none or absent.
const Text* optional_text(const Value* value, std::string_view name) {
  return value == nullptr || value->is_none() ? nullptr : &text_argument(*value, name);
}

Value strip(const StringCall& call) {
  const auto bound = bind(call.arguments, {""}, call.callee());
  call.runtime.ledger.step(1 + call.self.size() / kTextBytesPerStep);
  return call.runtime.string(strip_text(call.self, optional_text(bound[0], "chars"),
                                        call.name != "rstrip", call.name != "lstrip"));
}

// Pieces as offsets, since they are found from either end.
using Pieces = std::vector<std::pair<size_t, size_t>>;

void add_piece(Pieces* pieces, size_t begin, size_t end) {
  if (pieces->size() >= kMaxItems) fail_limit("a list would have more than ", kMaxItems, " items");
  pieces->emplace_back(begin, end);
}

Pieces split_by_spaces(const std::string& bytes, int64_t limit) {
  Pieces pieces;
  size_t i = 0;
  const auto skip = [&](bool spaces) {
    while (i < bytes.size()) {
      size_t next = i;
      if (is_space(next_code_point(bytes, &next)) != spaces) break;
      i = next;
    }
  };
  skip(true);
  while (i < bytes.size()) {
    const size_t begin = i;
    if (limit-- == 0) {
      add_piece(&pieces, begin, bytes.size());  // trailing spaces stay
      break;
    }
    skip(false);
    add_piece(&pieces, begin, i);
    skip(true);
  }
  return pieces;
}

Pieces rsplit_by_spaces(const std::string& bytes, int64_t limit) {
  Pieces pieces = split_by_spaces(bytes, -1);
  if (limit < 0 || pieces.size() <= static_cast<size_t>(limit)) return pieces;
  // The first pieces stay one, from the start of the text, which keeps its leading spaces off only
  // there.
  const size_t joined = pieces.size() - static_cast<size_t>(limit);
  size_t begin = 0;
  Pieces out{{begin, pieces[joined - 1].second}};
  out.insert(out.end(), pieces.begin() + static_cast<ptrdiff_t>(joined), pieces.end());
  return out;
}

Pieces split_by(const std::string& bytes, const std::string& separator, int64_t limit) {
  Pieces pieces;
  size_t begin = 0;
  while (limit-- != 0) {
    const size_t at = find_bytes(bytes, separator, begin);
    if (at == kNone) break;
    add_piece(&pieces, begin, at);
    begin = at + separator.size();
  }
  add_piece(&pieces, begin, bytes.size());
  return pieces;
}

Pieces rsplit_by(const std::string& bytes, const std::string& separator, int64_t limit) {
  Pieces pieces;
  size_t end = bytes.size();
  while (limit-- != 0 && end >= separator.size()) {
    const size_t at = bytes.rfind(separator, end - separator.size());
    if (at == kNone) break;
    add_piece(&pieces, at + separator.size(), end);
    end = at;
  }
  add_piece(&pieces, 0, end);
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

// rfind compares at every place: charge for the product, which stays small for real separators.
void charge_backwards(const StringCall& call, size_t needle) {
  call.runtime.ledger.step(1 +
                           call.self.size() / kTextBytesPerStep * (1 + needle / kTextBytesPerStep));
}

Value split(const StringCall& call) {
  const auto bound = bind(call.arguments, {"sep", "maxsplit"}, call.callee());
  const Text* separator = optional_text(bound[0], "sep");
  const int64_t limit = integer_argument(bound[1], -1, "maxsplit");
  if (separator != nullptr && separator->empty())
    fail_value(call.callee(), " with an empty separator");
  const bool backwards = call.name == "rsplit";
  charge_backwards(call, backwards && separator != nullptr ? separator->size() : 0);
  const std::string& bytes = call.self.bytes();
  Pieces pieces;
  if (separator == nullptr) {
    pieces = backwards ? rsplit_by_spaces(bytes, limit) : split_by_spaces(bytes, limit);
  } else {
    pieces = backwards && limit >= 0 ? rsplit_by(bytes, separator->bytes(), limit)
                                     : split_by(bytes, separator->bytes(), limit);
  }
  std::vector<Value> items;
  items.reserve(pieces.size());
  for (const auto& [begin, end] : pieces)
    items.push_back(call.runtime.string(call.self.slice(begin, end)));
  return call.runtime.list(std::move(items));
}

Value partition(const StringCall& call) {
  const auto bound = bind(call.arguments, {""}, call.callee(), 1);
  const Text& separator = text_argument(*bound[0], "sep");
  if (separator.empty()) fail_value(call.callee(), " with an empty separator");
  const bool backwards = call.name == "rpartition";
  charge_backwards(call, backwards ? separator.size() : 0);
  const size_t at = backwards ? call.self.bytes().rfind(separator.bytes())
                              : find_bytes(call.self.bytes(), separator.bytes(), 0);
  const Value empty = call.runtime.empty_string();
  const Value whole = call.runtime.string(call.self);
  if (at == kNone) {
    return call.runtime.tuple(backwards ? std::vector<Value>{empty, empty, whole}
                                        : std::vector<Value>{whole, empty, empty});
  }
  return call.runtime.tuple(
      {call.runtime.string(call.self.slice(0, at)), *bound[0],
       call.runtime.string(call.self.slice(at + separator.size(), call.self.size()))});
}

// The part of the text that optional start and end arguments (code points) leave.
struct Window {
  size_t begin = 0, end = 0;
  bool valid = true;  // false when start lies behind end, where not even '' is found
};

Window window_of(const StringCall& call, const Value* start, const Value* end) {
  if (start == nullptr && end == nullptr) return {0, call.self.size(), true};
  const auto length = static_cast<int64_t>(code_point_count(call.self.bytes()));
  const auto resolve = [length](const Value* value, int64_t fallback) {
    int64_t at = value == nullptr || value->is_none() ? fallback
                                                      : integer_argument(value, 0, "start or end");
    if (at < 0) at = at < -length ? 0 : at + length;
    return at;
  };
  const int64_t first = resolve(start, 0);
  const int64_t last = std::min(resolve(end, length), length);
  if (first > last) return {0, 0, false};
  return {code_point_offset(call.self.bytes(), static_cast<size_t>(first)),
          code_point_offset(call.self.bytes(), static_cast<size_t>(last)), true};
}

Value starts_or_ends(const StringCall& call) {
  const auto bound = bind(call.arguments, {"", "", ""}, call.callee(), 1);
  const Window window = window_of(call, bound[1], bound[2]);
  const std::string_view part =
      std::string_view(call.self.bytes()).substr(window.begin, window.end - window.begin);
  const auto matches = [&](const Value& candidate) {
    const std::string& text = text_argument(candidate, "prefix").bytes();
    return window.valid &&
           (call.name == "startswith" ? part.starts_with(text) : part.ends_with(text));
  };
  if (bound[0]->is(Kind::kSequence) && bound[0]->sequence().flavor == Flavor::kTuple) {
    const auto& candidates = bound[0]->sequence().items;
    return Value(std::any_of(candidates.begin(), candidates.end(), matches));
  }
  return Value(matches(*bound[0]));
}

Value find(const StringCall& call) {
  const auto bound = bind(call.arguments, {"", "", ""}, call.callee(), 1);
  const Text& needle = text_argument(*bound[0], "sub");
  const Window window = window_of(call, bound[1], bound[2]);
  const std::string_view text = std::string_view(call.self.bytes()).substr(0, window.end);
  const bool backwards = call.name == "rfind" || call.name == "rindex";
  charge_backwards(call, backwards ? needle.size() : 0);
  size_t at =
      backwards ? text.rfind(needle.bytes()) : find_bytes(text, needle.bytes(), window.begin);
  if (!window.valid || (at != kNone && at < window.begin)) at = kNone;
  if (at != kNone) return Value(static_cast<int64_t>(code_point_count(text.substr(0, at))));
  if (call.name == "index" || call.name == "rindex") fail_value(call.callee(), ": not found");
  return Value(int64_t{-1});
}

Value count(const StringCall& call) {
  const auto bound = bind(call.arguments, {"", "", ""}, call.callee(), 1);
  const Text& needle = text_argument(*bound[0], "sub");
  const Window window = window_of(call, bound[1], bound[2]);
  if (!window.valid) return Value(int64_t{0});
  call.runtime.ledger.step(1 + call.self.size() / kTextBytesPerStep);
  const std::string_view text = std::string_view(call.self.bytes()).substr(0, window.end);
  if (needle.empty())
    return Value(static_cast<int64_t>(code_point_count(text.substr(window.begin))) + 1);
  int64_t found = 0;
  for (size_t at = find_bytes(text, needle.bytes(), window.begin); at != kNone;
       at = find_bytes(text, needle.bytes(), at + needle.size())) {
    ++found;
  }
  return Value(found);
}

Value replace(const StringCall& call) {
  const auto bound = bind(call.arguments, {"", "", ""}, call.callee(), 2);
  return call.runtime.string(replace_text(call.runtime, call.self, text_argument(*bound[0], "old"),
                                          text_argument(*bound[1], "new"),
                                          integer_argument(bound[2], -1, "count")));
}

Value join(const StringCall& call) {
  const auto bound = bind(call.arguments, {""}, call.callee(), 1);
  Text out;
  bool first = true;
  for (const Value& item : call.runtime.items_of(*bound[0])) {
    if (!first) out.append(call.self);
    first = false;
    out.append(text_argument(item, "an item"));
    if (out.size() > kMaxStringBytes)
      fail_limit("a string would be longer than ", human_bytes(kMaxStringBytes));
  }
  return call.runtime.string(std::move(out));
}

Value remove_affix(const StringCall& call) {
  const auto bound = bind(call.arguments, {""}, call.callee(), 1);
  const std::string& affix = text_argument(*bound[0], "affix").bytes();
  const std::string& bytes = call.self.bytes();
  if (call.name == "removeprefix") {
    return call.runtime.string(
        call.self.slice(bytes.starts_with(affix) ? affix.size() : 0, bytes.size()));
  }
  return call.runtime.string(
      call.self.slice(0, bytes.size() - (bytes.ends_with(affix) ? affix.size() : 0)));
}

// str.title: a letter behind a letter is small, any other is large.
Value title(const StringCall& call) {
  bind(call.arguments, {}, call.callee());
  call.runtime.ledger.step(1 + call.self.size() / 16);
  Text out;
  bool inside = false;
  for (size_t i = 0; i < call.self.size();) {
    const size_t at = i;
    const uint32_t c = next_code_point(call.self.bytes(), &i);
    for (const uint32_t mapped : inside ? to_lower(c) : to_title(c)) {
      if (mapped != 0 || c == 0) append_code_point(&out, mapped, call.self.trusted_at(at));
      if (c == 0) break;
    }
    inside = is_lowercase(c) || is_uppercase(c);
  }
  return call.runtime.string(std::move(out));
}

Value swap_case(const StringCall& call) {
  bind(call.arguments, {}, call.callee());
  call.runtime.ledger.step(1 + call.self.size() / 16);
  Text out;
  for (size_t i = 0; i < call.self.size();) {
    const size_t at = i;
    const uint32_t c = next_code_point(call.self.bytes(), &i);
    const Text one = call.self.slice(at, i);
    out.append(is_uppercase(c) || is_lowercase(c)
                   ? map_characters(call.runtime, one, is_lowercase(c))
                   : one);
  }
  return call.runtime.string(std::move(out));
}

Value change_case(const StringCall& call) {
  bind(call.arguments, {}, call.callee());
  if (call.name == "capitalize")
    return call.runtime.string(capitalize_text(call.runtime, call.self));
  return call.runtime.string(map_characters(call.runtime, call.self, call.name == "upper"));
}

Value pad(const StringCall& call) {
  const auto bound = bind(call.arguments, {"", ""}, call.callee(), 1);
  const int64_t width = integer_argument(bound[0], 0, "width");
  if (width > kMaxPadding) fail_limit(call.callee(), " to more than ", kMaxPadding, " characters");
  const Text fill = bound[1] == nullptr ? Text(call.name == "zfill" ? "0" : " ", true)
                                        : text_argument(*bound[1], "fillchar");
  if (code_point_count(fill.bytes()) != 1) fail_value(call.callee(), " needs one fill character");
  const int64_t missing =
      std::max<int64_t>(0, width - static_cast<int64_t>(code_point_count(call.self.bytes())));
  int64_t left = call.name == "ljust" ? 0 : missing;
  if (call.name == "center") left = missing / 2 + (missing & width & 1);  // Python's own rounding
  Text out;
  const bool sign = call.name == "zfill" && !call.self.empty() &&
                    (call.self.bytes()[0] == '-' || call.self.bytes()[0] == '+');
  if (sign) out.append(call.self, 0, 1);
  for (int64_t i = 0; i < left; ++i) out.append(fill);
  out.append(call.self, sign ? 1 : 0, call.self.size());
  for (int64_t i = left; i < missing; ++i) out.append(fill);
  return call.runtime.string(std::move(out));
}

Value lines(const StringCall& call) {
  const auto bound = bind(call.arguments, {"keepends"}, call.callee());
  std::vector<Value> items;
  for (Text& line : split_lines(call.runtime, call.self, bound[0] != nullptr && truth(*bound[0]))) {
    items.push_back(call.runtime.string(std::move(line)));
  }
  return call.runtime.list(std::move(items));
}

bool is_title(const Text& text) {
  bool cased = false;
  bool inside = false;
  for (size_t i = 0; i < text.size();) {
    const uint32_t c = next_code_point(text.bytes(), &i);
    if ((is_uppercase(c) && inside) || (is_lowercase(c) && !inside)) return false;
    inside = is_uppercase(c) || is_lowercase(c);
    cased = cased || inside;
  }
  return cased;
}

Value ask(const StringCall& call) {
  bind(call.arguments, {}, call.callee());
  call.runtime.ledger.step(1 + call.self.size() / 16);
  if (call.name == "isupper" || call.name == "islower")
    return Value(is_case(call.self, call.name == "isupper"));
  if (call.name == "istitle") return Value(is_title(call.self));
  if (call.name == "isascii") {
    return Value(code_point_count(call.self.bytes()) == call.self.size());
  }
  const auto holds = [&](uint32_t c) {
    if (call.name == "isdigit") return is_digit(c);
    if (call.name == "isdecimal") return is_decimal(c);
    if (call.name == "isnumeric") return is_numeric(c);
    if (call.name == "isalpha") return is_alpha(c);
    if (call.name == "isalnum") return is_alpha(c) || is_numeric(c);
    if (call.name == "isspace") return is_space(c);
    return is_printable(c);
  };
  for (size_t i = 0; i < call.self.size();) {
    if (!holds(next_code_point(call.self.bytes(), &i))) return Value(false);
  }
  return Value(!call.self.empty() || call.name == "isprintable");
}

Value format(const StringCall& call) {
  return format_braces(call.runtime, call.self, call.arguments);
}

struct StringMethod {
  std::string_view name;
  Value (*apply)(const StringCall& call);
};

constexpr StringMethod kStringMethods[] = {
    {"capitalize", change_case},
    {"center", pad},
    {"count", count},
    {"endswith", starts_or_ends},
    {"find", find},
    {"format", format},
    {"index", find},
    {"isalnum", ask},
    {"isalpha", ask},
    {"isascii", ask},
    {"isdecimal", ask},
    {"isdigit", ask},
    {"islower", ask},
    {"isnumeric", ask},
    {"isprintable", ask},
    {"isspace", ask},
    {"istitle", ask},
    {"isupper", ask},
    {"join", join},
    {"ljust", pad},
    {"lower", change_case},
    {"lstrip", strip},
    {"partition", partition},
    {"removeprefix", remove_affix},
    {"removesuffix", remove_affix},
    {"replace", replace},
    {"rfind", find},
    {"rindex", find},
    {"rjust", pad},
    {"rpartition", partition},
    {"rsplit", split},
    {"rstrip", strip},
    {"split", split},
    {"splitlines", lines},
    {"startswith", starts_or_ends},
    {"strip", strip},
    {"swapcase", swap_case},
    {"title", title},
    {"upper", change_case},
    {"zfill", pad},
};

constexpr std::string_view kForbiddenOfList[] = {"append", "clear", "pop",    "reverse",
                                                 "insert", "sort",  "extend", "remove"};
constexpr std::string_view kForbiddenOfDict[] = {"clear", "pop", "popitem", "setdefault", "update"};
// Python has these, Topknot does not.
constexpr std::string_view kUnsupportedOfString[] = {
    "casefold", "encode", "expandtabs", "format_map", "isidentifier", "maketrans", "translate"};

const StringMethod* find_string_method(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kStringMethods), std::end(kStringMethods),
                   [name](const StringMethod& method) { return method.name == name; });
  return found == std::end(kStringMethods) ? nullptr : found;
}

Value call_dict_method(Runtime& runtime, const Value& self, std::string_view name,
                       const Arguments& arguments) {
  const Dict& dict = self.dict();
  if (name == "get") {
    const auto bound = bind(arguments, {"", ""}, "dict.get()", 1);
    require_hashable(*bound[0]);
    const Value* held = dict.find(*bound[0], &runtime.ledger);
    if (held != nullptr) return *held;
    return bound[1] != nullptr ? *bound[1] : Value(None{});
  }
  bind(arguments, {}, cat("dict.", name, "()"));
  if (name == "copy") return self;
  std::vector<Value> items;
  items.reserve(dict.entries.size());
  for (const auto& [key, value] : dict.entries) {
    items.push_back(name == "keys" ? key : name == "values" ? value : runtime.tuple({key, value}));
  }
  return runtime.list(std::move(items), name == "keys"     ? Flavor::kKeys
                                        : name == "values" ? Flavor::kValues
                                                           : Flavor::kItems);
}

Value call_list_method(Runtime& runtime, const Value& self, std::string_view name,
                       const Arguments& arguments) {
  if (name == "copy") {
    bind(arguments, {}, "list.copy()");
    return self;
  }
  const auto bound = bind(arguments, {""}, cat("list.", name, "()"), 1);
  const auto& items = self.sequence().items;
  int64_t found = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    if (!equal(items[i], *bound[0], &runtime.ledger)) continue;
    if (name == "index") return Value(static_cast<int64_t>(i));
    ++found;
  }
  if (name == "index") fail_value("list.index(): not found");
  return Value(found);
}

Value call_loop_method(Runtime& runtime, const Value& self, std::string_view name,
                       const Arguments& arguments) {
  LoopState& loop = *self.get<std::shared_ptr<LoopState>>();
  if (!arguments.keywords.empty()) fail_value("loop.", name, "() takes no keyword arguments");
  if (name == "cycle") {
    if (arguments.positional.empty()) fail_value("loop.cycle() without items");
    return arguments.positional[loop.index % arguments.positional.size()];
  }
  if (loop.last_changed) {
    const Value before = runtime.list(*loop.last_changed);
    if (equal(before, runtime.list(arguments.positional), &runtime.ledger)) return Value(false);
  }
  if (loop.running)
    loop.last_changed = arguments.positional;  // not after its end: it may hold the loop itself
  return Value(true);
}

Value call_cycler_method(const Value& self, std::string_view name, const Arguments& arguments) {
  Cycler& cycler = *self.get<std::shared_ptr<Cycler>>();
  bind(arguments, {}, cat("cycler.", name, "()"));
  if (name == "reset") {
    cycler.next = 0;
    return Value(None{});
  }
  const Value item = cycler.items[cycler.next];
  cycler.next = (cycler.next + 1) % cycler.items.size();
  return item;
}

}  // namespace

MethodState find_method(const Value& value, std::string_view name) {
  const auto callable_if = [](bool known) {
    return known ? MethodState::kCallable : MethodState::kAbsent;
  };
  if (name.starts_with("__") && name.ends_with("__") && !value.is(Kind::kNamespace)) {
    return MethodState::kForbidden;  // Python's own attributes
  }
  switch (value.kind()) {
    case Kind::kString:
      return callable_if(find_string_method(name) != nullptr || one_of(name, kUnsupportedOfString));
    case Kind::kDict:
      if (one_of(name, kForbiddenOfDict)) return MethodState::kForbidden;
      return callable_if(one_of(
          name, std::initializer_list<std::string_view>{"get", "keys", "values", "items", "copy"}));
    case Kind::kSequence: {
      const Flavor flavor = value.sequence().flavor;
      if (flavor == Flavor::kList && one_of(name, kForbiddenOfList)) return MethodState::kForbidden;
      if (flavor == Flavor::kList && name == "copy") return MethodState::kCallable;
      const bool indexed =
          flavor == Flavor::kList || flavor == Flavor::kTuple || flavor == Flavor::kRange;
      return callable_if(indexed &&
                         one_of(name, std::initializer_list<std::string_view>{"index", "count"}));
    }
    case Kind::kLoop:
      return callable_if(one_of(name, std::initializer_list<std::string_view>{"cycle", "changed"}));
    case Kind::kCycler:
      return callable_if(one_of(name, std::initializer_list<std::string_view>{"next", "reset"}));
    default: return MethodState::kAbsent;
  }
}

Value call_method(Runtime& runtime, const Value& self, std::string_view name,
                  const Arguments& arguments) {
  switch (self.kind()) {
    case Kind::kString: {
      const StringMethod* method = find_string_method(name);
      if (method == nullptr) fail_unsupported("the method str.", name, "()");
      return method->apply({runtime, self.text(), name, arguments});
    }
    case Kind::kDict: return call_dict_method(runtime, self, name, arguments);
    case Kind::kSequence: return call_list_method(runtime, self, name, arguments);
    case Kind::kLoop: return call_loop_method(runtime, self, name, arguments);
    default: return call_cycler_method(self, name, arguments);
  }
}

}  // namespace topknot::chat
