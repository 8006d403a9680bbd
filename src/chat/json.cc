#include "chat/json.h"

#include <algorithm>
#include <cmath>

#include "chat/filters.h"
#include "chat/operators.h"
#include "chat/unicode.h"

namespace topknot::chat {
namespace {

using Json = nlohmann::ordered_json;

Value convert(Runtime& runtime, const Json& json, bool trusted, uint32_t depth) {
  if (depth > kMaxValueDepth) fail_limit("values nest more than ", kMaxValueDepth, " deep");
  switch (json.type()) {
    case Json::value_t::boolean: return Value(json.get<bool>());
    case Json::value_t::number_integer: return Value(json.get<int64_t>());
    case Json::value_t::number_unsigned:
      if (json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
        fail_limit("the integer ", json.get<uint64_t>(), " is over 64 bits");
      return Value(static_cast<int64_t>(json.get<uint64_t>()));
    case Json::value_t::number_float: return Value(json.get<double>());
    case Json::value_t::string: {
      const std::string& bytes = json.get_ref<const std::string&>();
      return runtime.string(
          find_invalid_utf8(bytes) == std::string::npos ? bytes : to_valid_utf8(bytes), trusted);
    }
    case Json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const Json& item : json) items.push_back(convert(runtime, item, trusted, depth + 1));
      return runtime.list(std::move(items));
    }
    case Json::value_t::object: {
      auto dict = std::make_shared<Dict>();
      for (const auto& [key, item] : json.items()) {
        dict->set(runtime.string(to_valid_utf8(key), trusted),
                  convert(runtime, item, trusted, depth + 1), &runtime.ledger);
      }
      return runtime.dict(std::move(dict));
    }
    default: return Value(None{});
  }
}

struct JsonStyle {
  bool ascii = false, sort = false;
  std::optional<Text> indent;
  Text item_separator, key_separator;
};

// json.dumps.
class JsonWriter {
 public:
  JsonWriter(Runtime& runtime, JsonStyle style) : runtime_(runtime), style_(std::move(style)) {}

  Text write(const Value& value) {
    append(value, 0);
    return std::move(out_);
  }

 private:
  void put(std::string_view structure) { out_.append(structure, false); }

  void append(const Value& value, uint32_t depth) {
    runtime_.ledger.step();
    if (out_.size() > kMaxStringBytes)
      fail_limit("a string would be longer than ", human_bytes(kMaxStringBytes));
    switch (value.kind()) {
      case Kind::kNone: return put("null");
      case Kind::kBool: return put(value.get<bool>() ? "true" : "false");
      case Kind::kInt: return put(cat(value.get<int64_t>()));
      case Kind::kFloat: return put(number(value.get<double>()));
      case Kind::kString: return append_string(value.text());
      case Kind::kDict: return append_dict(value.dict(), depth);
      case Kind::kSequence:
        if (value.sequence().flavor == Flavor::kList || value.sequence().flavor == Flavor::kTuple) {
          return append_list(value.sequence().items, depth);
        }
        [[fallthrough]];
      default: fail_value("a ", type_name(value), " cannot become JSON");
    }
  }

  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return float_repr(value);
  }

  void new_line(uint32_t depth) {
    if (!style_.indent) return;
    put("\n");
    for (uint32_t i = 0; i < depth; ++i) out_.append(*style_.indent);
  }

  void append_list(const std::vector<Value>& items, uint32_t depth) {
    if (items.empty()) return put("[]");
    put("[");
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) out_.append(style_.item_separator);
      new_line(depth + 1);
      append(items[i], depth + 1);
    }
    new_line(depth);
    put("]");
  }

  void append_dict(const Dict& dict, uint32_t depth) {
    if (dict.entries.empty()) return put("{}");
    std::vector<size_t> order(dict.entries.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (style_.sort) {
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return less(dict.entries[a].first, dict.entries[b].first, &runtime_.ledger);
      });
    }
    put("{");
    bool first = true;
    for (const size_t i : order) {
      if (!first) out_.append(style_.item_separator);
      first = false;
      new_line(depth + 1);
      append_key(dict.entries[i].first);
      out_.append(style_.key_separator);
      append(dict.entries[i].second, depth + 1);
    }
    new_line(depth);
    put("}");
  }

  void append_key(const Value& key) {
    switch (key.kind()) {
      case Kind::kString: return append_string(key.text());
      case Kind::kNone: return put("\"null\"");
      case Kind::kBool: return put(key.get<bool>() ? "\"true\"" : "\"false\"");
      case Kind::kInt: return put(cat('"', key.get<int64_t>(), '"'));
      case Kind::kFloat: return put(cat('"', number(key.get<double>()), '"'));
      default: fail_value("a ", type_name(key), " cannot be a key of JSON");
    }
  }

  void append_string(const Text& text) {
    runtime_.ledger.step(text.size() / 16);
    put("\"");
    size_t copied = 0;
    for (size_t i = 0; i < text.size();) {
      const size_t at = i;
      const uint32_t c = next_code_point(text.bytes(), &i);
      if (c >= 0x20 && c != '"' && c != '\\' && (c < 0x7F || !style_.ascii)) continue;
      if (c == 0x7F) continue;
      out_.append(text, copied, at);
      out_.append(escape(c), text.trusted_at(at));
      copied = i;
    }
    out_.append(text, copied, text.size());
    put("\"");
  }

  static std::string escape(uint32_t c) {
    switch (c) {
      case '"': return "\\\"";
      case '\\': return "\\\\";
      case '\n': return "\\n";
      case '\r': return "\\r";
      case '\t': return "\\t";
      case '\b': return "\\b";
      case '\f': return "\\f";
      default: break;
    }
    if (c < 0x10000) return fmt::format("\\u{:04x}", c);
    c -= 0x10000;
    return fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (c >> 10), 0xDC00 + (c & 0x3FF));
  }

  Runtime& runtime_;
  const JsonStyle style_;
  Text out_;
};

}  // namespace

Value from_json(Runtime& runtime, const Json& json, bool trusted) {
  return convert(runtime, json, trusted, 0);
}

bool is_usual_role(std::string_view role) {
  static constexpr std::string_view kRoles[] = {"system",      "user",      "assistant",
                                                "tool",        "developer", "function",
                                                "observation", "ipython",   "model"};
  return std::find(std::begin(kRoles), std::end(kRoles), role) != std::end(kRoles);
}

Value messages_from_json(Runtime& runtime, const Json& json) {
  std::vector<Value> messages;
  for (const Json& message : json) {
    if (!message.is_object()) {
      messages.push_back(from_json(runtime, message, false));
      continue;
    }
    auto dict = std::make_shared<Dict>();
    for (const auto& [key, item] : message.items()) {
      const bool trusted =
          key == "role" && item.is_string() && is_usual_role(item.get_ref<const std::string&>());
      dict->set(runtime.string(to_valid_utf8(key), false), convert(runtime, item, trusted, 2),
                &runtime.ledger);
    }
    messages.push_back(runtime.dict(std::move(dict)));
  }
  return runtime.list(std::move(messages));
}

Value filter_tojson(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound =
      bind(arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}, "the filter 'tojson'");
  JsonStyle style;
  style.ascii = bound[0] != nullptr && truth(*bound[0]);
  style.sort = bound[3] != nullptr && truth(*bound[3]);
  if (bound[1] != nullptr && !bound[1]->is_none()) {
    style.indent = bound[1]->is_string() ? bound[1]->text() : Text();
    if (!bound[1]->is_string()) {
      const int64_t width = integer_argument(bound[1], 0, "indent");
      if (width > kMaxPadding) fail_limit("'tojson' indented by more than ", kMaxPadding);
      style.indent->append(std::string(static_cast<size_t>(std::max<int64_t>(0, width)), ' '),
                           false);
    }
  }
  style.item_separator.append(style.indent ? "," : ", ", false);
  style.key_separator.append(": ", false);
  if (bound[2] != nullptr && !bound[2]->is_none()) {
    const std::vector<Value> separators = runtime.items_of(*bound[2]);
    if (separators.size() != 2) fail_value("'separators' needs two strings");
    style.item_separator = text_argument(separators[0], "separators");
    style.key_separator = text_argument(separators[1], "separators");
  }
  return runtime.string(JsonWriter(runtime, std::move(style)).write(value));
}

}  // namespace topknot::chat
