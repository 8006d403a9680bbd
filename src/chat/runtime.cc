#include "chat/runtime.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "chat/macro.h"
#include "chat/unicode.h"

namespace topknot::chat {
namespace {

void append_string_repr(Text* out, const Text& text) {
  const std::string& bytes = text.bytes();
  const bool has_single = bytes.find('\'') != std::string::npos;
  const char quote = has_single && bytes.find('"') == std::string::npos ? '"' : '\'';
  out->append(std::string_view(&quote, 1), false);
  for (size_t i = 0; i < bytes.size();) {
    const size_t begin = i;
    const uint32_t c = next_code_point(bytes, &i);
    const bool trusted = text.trusted_at(begin);
    if (c == static_cast<uint32_t>(quote) || c == '\\') {
      out->append("\\", trusted);
      append_code_point(out, c, trusted);
    } else if (c == '\n' || c == '\r' || c == '\t') {
      out->append(c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t", trusted);
    } else if (is_printable(c)) {
      out->append(text, begin, i);
    } else if (c < 0x100) {
      out->append(fmt::format("\\x{:02x}", c), trusted);
    } else if (c < 0x10000) {
      out->append(fmt::format("\\u{:04x}", c), trusted);
    } else {
      out->append(fmt::format("\\U{:08x}", c), trusted);
    }
  }
  out->append(std::string_view(&quote, 1), false);
}

std::string scalar_text(const Value& value) {
  if (value.is_none()) return "None";
  if (value.is(Kind::kBool)) return value.get<bool>() ? "True" : "False";
  if (value.is(Kind::kInt)) return cat(value.get<int64_t>());
  return float_repr(value.get<double>());
}

}  // namespace

Runtime::~Runtime() {
  for (auto& entry : namespaces_) entry->attributes.clear();
}

void Runtime::adopt(Object* object, size_t bytes, uint32_t inner_depth) {
  object->depth = inner_depth + 1;
  if (object->depth > kMaxValueDepth) fail_limit("values nest more than ", kMaxValueDepth, " deep");
  ledger.acquire(bytes);
  object->ledger = &ledger;
  object->bytes = bytes;
}

Value Runtime::string(Text text, bool markup) {
  if (text.size() > kMaxStringBytes)
    fail_limit("a string would be longer than ", human_bytes(kMaxStringBytes));
  auto object = std::make_shared<StringObject>();
  adopt(object.get(), sizeof(StringObject) + text.size() + text.runs().size() * sizeof(Text::Run),
        0);
  object->text = std::move(text);
  object->markup = markup;
  return Value(std::shared_ptr<const StringObject>(std::move(object)));
}

Value Runtime::list(std::vector<Value> items, Flavor flavor) {
  if (items.size() > kMaxItems) fail_limit("a list would have more than ", kMaxItems, " items");
  auto object = std::make_shared<Sequence>();
  uint32_t inner = 0;
  for (const Value& item : items) inner = std::max(inner, item.depth());
  adopt(object.get(), sizeof(Sequence) + items.size() * sizeof(Value), inner);
  object->items = std::move(items);
  object->flavor = flavor;
  return Value(std::shared_ptr<const Sequence>(std::move(object)));
}

Value Runtime::dict(std::shared_ptr<Dict> made) {
  if (made->entries.size() > kMaxItems)
    fail_limit("a dict would have more than ", kMaxItems, " entries");
  adopt(made.get(), sizeof(Dict) + made->entries.size() * 3 * sizeof(Value), made->depth - 1);
  return Value(std::shared_ptr<const Dict>(std::move(made)));
}

Value Runtime::iterator(std::vector<Value> items, std::optional<Failure> failure) {
  auto object = std::make_shared<Iterator>();
  uint32_t inner = 0;
  for (const Value& item : items) inner = std::max(inner, item.depth());
  adopt(object.get(), sizeof(Iterator) + items.size() * sizeof(Value), inner);
  object->items = std::move(items);
  object->failure = std::move(failure);
  return Value(std::move(object));
}

Value Runtime::method(const Value& self, std::string_view name) {
  auto object = std::make_shared<Method>();
  adopt(object.get(), sizeof(Method), self.depth());
  object->self = self;
  object->name = name;
  return Value(std::shared_ptr<const Method>(std::move(object)));
}

Value Runtime::make_namespace() {
  ledger.acquire(sizeof(Namespace));
  namespaces_.push_back(std::make_unique<Namespace>());
  return Value(namespaces_.back().get());
}

Value Runtime::range(int64_t start, int64_t stop, int64_t step) {
  if (step == 0) fail_value("range() with a step of zero");
  // Wide enough for any two int64.
  const __int128 span =
      step > 0 ? static_cast<__int128>(stop) - start : static_cast<__int128>(start) - stop;
  const __int128 stride = step > 0 ? step : -static_cast<__int128>(step);
  const __int128 count = span <= 0 ? 0 : (span + stride - 1) / stride;
  if (count > kMaxRange) fail_limit("range() of more than ", kMaxRange, " items");
  std::vector<Value> items;
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) items.emplace_back(start + i * step);
  const Value made = list(std::move(items), Flavor::kRange);
  auto& sequence = const_cast<Sequence&>(made.sequence());  // not yet shared
  sequence.range_start = start;
  sequence.range_stop = stop;
  sequence.range_step = step;
  return made;
}

std::shared_ptr<LoopState> Runtime::loop(std::vector<Value> items) {
  auto object = std::make_shared<LoopState>();
  uint32_t inner = 0;
  for (const Value& item : items) inner = std::max(inner, item.depth());
  adopt(object.get(), sizeof(LoopState) + items.size() * sizeof(Value), inner);
  object->items = std::move(items);
  return object;
}

Text Runtime::to_text(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined: return {};
    case Kind::kNone:
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat: return Text(scalar_text(value), true);
    case Kind::kString: ledger.step(value.text().size() / kTextBytesPerStep); return value.text();
    default: return repr(value);
  }
}

Text Runtime::repr(const Value& value) {
  Text out;
  append_repr(&out, value, 0);
  return out;
}

void Runtime::append_items(Text* out, const std::vector<Value>& items, uint32_t depth) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out->append(", ", false);
    append_repr(out, items[i], depth + 1);
  }
}

void Runtime::append_repr(Text* out, const Value& value, uint32_t depth) {
  // Only a namespace can hold itself; everything else is shallower than this.
  if (depth > 2 * kMaxValueDepth) fail_limit("values nest too deep to print");
  ledger.step();
  if (out->size() > kMaxStringBytes)
    fail_limit("a string would be longer than ", human_bytes(kMaxStringBytes));
  switch (value.kind()) {
    case Kind::kUndefined: out->append("Undefined", false); return;
    case Kind::kString:
      ledger.step(value.text().size() / 16);
      if (const auto& held = value.get<std::shared_ptr<const StringObject>>(); held->markup) {
        out->append("Markup(", false);
        append_string_repr(out, held->text);
        out->append(")", false);
      } else {
        append_string_repr(out, held->text);
      }
      return;
    case Kind::kSequence: {
      const Sequence& sequence = value.sequence();
      if (sequence.flavor == Flavor::kRange) {
        const std::string step = sequence.range_step == 1 ? "" : cat(", ", sequence.range_step);
        out->append(cat("range(", sequence.range_start, ", ", sequence.range_stop, step, ")"),
                    false);
        return;
      }
      const bool tuple = sequence.flavor == Flavor::kTuple;
      const bool view = !tuple && sequence.flavor != Flavor::kList;
      if (view) out->append(cat(type_name(value), "("), false);
      out->append(tuple ? "(" : "[", false);
      append_items(out, sequence.items, depth);
      out->append(tuple ? (sequence.items.size() == 1 ? ",)" : ")") : "]", false);
      if (view) out->append(")", false);
      return;
    }
    case Kind::kDict: {
      out->append("{", false);
      bool first = true;
      for (const auto& [key, item] : value.dict().entries) {
        if (!first) out->append(", ", false);
        first = false;
        append_repr(out, key, depth + 1);
        out->append(": ", false);
        append_repr(out, item, depth + 1);
      }
      out->append("}", false);
      return;
    }
    case Kind::kNamespace: {
      out->append("<Namespace {", false);
      bool first = true;
      for (const auto& [name, item] : value.get<Namespace*>()->attributes) {
        out->append(cat(first ? "'" : ", '", name, "': "), false);
        first = false;
        append_repr(out, item, depth + 1);
      }
      out->append("}>", false);
      return;
    }
    case Kind::kMacro: out->append(cat("<Macro ", macro_name(value), ">"), false); return;
    case Kind::kNone:
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat: out->append(scalar_text(value), false); return;
    default: fail_unsupported("printing a ", type_name(value));
  }
}

bool Runtime::is_iterable(const Value& value) const {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kString:
    case Kind::kSequence:
    case Kind::kDict:
    case Kind::kIterator:
    case Kind::kLoop: return true;
    default: return false;
  }
}

std::vector<Value> Runtime::items_of(const Value& value) {
  std::vector<Value> items;
  switch (value.kind()) {
    case Kind::kUndefined: return items;
    case Kind::kString: {
      const Text& text = value.text();
      for (size_t i = 0; i < text.size();) {
        const size_t begin = i;
        next_code_point(text.bytes(), &i);
        if (items.size() >= kMaxItems)
          fail_limit("a list would have more than ", kMaxItems, " items");
        items.push_back(string(text.slice(begin, i)));
      }
      return items;
    }
    case Kind::kSequence: items = value.sequence().items; break;
    case Kind::kDict:
      items.reserve(value.dict().entries.size());
      for (const auto& entry : value.dict().entries) items.push_back(entry.first);
      break;
    case Kind::kIterator: {
      Iterator& iterator = *value.get<std::shared_ptr<Iterator>>();
      items.assign(iterator.items.begin() + static_cast<ptrdiff_t>(iterator.next),
                   iterator.items.end());
      iterator.next = iterator.items.size();
      if (iterator.failure) throw *iterator.failure;
      break;
    }
    case Kind::kLoop: fail_unsupported("iterating over `loop` itself");
    default: fail_value("a ", type_name(value), " cannot be iterated over");
  }
  ledger.step(items.size());
  return items;
}

int64_t Runtime::length_of(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined: return 0;
    case Kind::kString:
      ledger.step(value.text().size() / kTextBytesPerStep);
      return static_cast<int64_t>(code_point_count(value.bytes()));
    case Kind::kSequence: return static_cast<int64_t>(value.sequence().items.size());
    case Kind::kDict: return static_cast<int64_t>(value.dict().entries.size());
    case Kind::kLoop:
      return static_cast<int64_t>(value.get<std::shared_ptr<LoopState>>()->items.size());
    default: fail_value("a ", type_name(value), " has no length");
  }
}

std::vector<const Value*> bind(const Arguments& arguments,
                               std::initializer_list<std::string_view> names,
                               std::string_view callee, size_t required) {
  std::vector<const Value*> bound(names.size(), nullptr);
  if (arguments.positional.size() > names.size()) {
    fail_value(callee, " takes at most ", names.size(), " arguments, ", arguments.positional.size(),
               " given");
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) bound[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.keywords) {
    const auto found = std::find(names.begin(), names.end(), std::string_view(name));
    if (found == names.end() || name.empty()) fail_value(callee, " has no argument '", name, "'");
    const Value*& place = bound[static_cast<size_t>(found - names.begin())];
    if (place != nullptr) fail_value(callee, " is given '", name, "' twice");
    place = &value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (bound[i] == nullptr) fail_value(callee, " needs its argument '", *(names.begin() + i), "'");
  }
  return bound;
}

int64_t integer_argument(const Value* value, int64_t fallback, std::string_view name) {
  if (value == nullptr) return fallback;
  if (!value->is_integral())
    fail_value("'", name, "' must be an integer, not a ", type_name(*value));
  return value->integer();
}

const Text& text_argument(const Value& value, std::string_view name) {
  if (!value.is_string()) fail_value("'", name, "' must be a string, not a ", type_name(value));
  return value.text();
}

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto result =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  std::string_view scientific(buffer, static_cast<size_t>(result.ptr - buffer));
  const bool negative = scientific.front() == '-';
  if (negative) scientific.remove_prefix(1);
  const size_t e = scientific.find('e');
  std::string_view exponent_text = scientific.substr(e + 1);
  if (exponent_text.front() == '+') exponent_text.remove_prefix(1);
  int exponent = 0;
  std::from_chars(exponent_text.data(), exponent_text.data() + exponent_text.size(), exponent);
  std::string digits;
  for (const char c : scientific.substr(0, e)) {
    if (c != '.') digits += c;
  }
  std::string out = negative ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    out += digits.substr(0, 1);
    if (digits.size() > 1) out += "." + digits.substr(1);
    return out + fmt::format("e{}{:02}", exponent < 0 ? "-" : "+", std::abs(exponent));
  }
  if (exponent < 0)
    return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

void append_code_point(Text* out, uint32_t code_point, bool trusted) {
  std::string bytes;
  append_utf8(&bytes, code_point);
  out->append(bytes, trusted);
}

}  // namespace topknot::chat
