// Filters of text and numbers, and the table of all filters.
#include "chat/filters.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "chat/operators.h"
#include "chat/unicode.h"

namespace topknot::chat {
namespace {

// int(text, base): the text of an integer, with spaces around and underscores within.
std::optional<int64_t> parse_integer(const Text& text, int64_t base) {
  std::string digits = strip_text(text, nullptr, true, true).bytes();
  bool negative = false;
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) {
    negative = digits[0] == '-';
    digits.erase(0, 1);
  }
  const char mark =
      digits.size() > 1 && digits[0] == '0' ? static_cast<char>(digits[1] | 0x20) : '\0';
  const int64_t marked = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
  if (marked != 0 && (base == marked || base == 0)) {
    digits.erase(0, 2);
    if (!digits.empty() && digits[0] == '_') digits.erase(0, 1);
    base = marked;
  }
  if (base == 0) base = 10;
  if (base < 2 || base > 36) return std::nullopt;
  if (digits.empty() || digits.front() == '_' || digits.back() == '_' ||
      digits.find("__") != std::string::npos)
    return std::nullopt;
  std::erase(digits, '_');
  if (digits.empty() || !std::isalnum(static_cast<unsigned char>(digits[0]))) return std::nullopt;
  if (negative) digits = cat("-", digits);
  int64_t value = 0;
  const auto result =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, static_cast<int>(base));
  if (result.ptr != digits.data() + digits.size()) return std::nullopt;
  if (result.ec != std::errc()) fail_limit("an integer over 64 bits");
  return value;
}

std::optional<double> parse_float(const Text& text) {
  std::string digits = strip_text(text, nullptr, true, true).bytes();
  for (size_t i = 0; i < digits.size(); ++i) {
    if (digits[i] != '_') continue;
    const auto is_digit_at = [&](size_t at) {
      return at < digits.size() && std::isdigit(static_cast<unsigned char>(digits[at]));
    };
    if (i == 0 || !is_digit_at(i - 1) || !is_digit_at(i + 1)) return std::nullopt;
  }
  std::erase(digits, '_');
  const bool negative = !digits.empty() && digits[0] == '-';
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) digits.erase(0, 1);
  if (digits.empty() || digits[0] == '-' || digits[0] == '+' ||
      digits.find('(') != std::string::npos)
    return std::nullopt;
  double value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ptr != digits.data() + digits.size()) return std::nullopt;
  if (result.ec == std::errc::result_out_of_range)
    value = std::strtod(digits.c_str(), nullptr);  // 0 or inf, as Python
  return negative ? -value : value;
}

int64_t truncate(double value) {
  if (!(std::fabs(value) < 9.2e18)) fail_limit("a number that does not fit 64 bits");
  return static_cast<int64_t>(value);
}

Value filter_int(Runtime&, const Value& value, const Arguments& arguments) {
  const auto bound = bind(arguments, {"default", "base"}, "the filter 'int'");
  const Value fallback = bound[0] != nullptr ? *bound[0] : Value(int64_t{0});
  if (value.is_undefined()) fail_value(undefined_reason(value));
  if (value.is_integral()) return Value(value.integer());
  if (value.is(Kind::kFloat)) {
    if (std::isinf(value.number())) fail_value("infinity is no integer");
    return std::isnan(value.number()) ? fallback : Value(truncate(value.number()));
  }
  if (!value.is_string()) return fallback;
  if (const auto parsed = parse_integer(value.text(), integer_argument(bound[1], 10, "base")))
    return Value(*parsed);
  const auto real = parse_float(value.text());
  return real && std::isfinite(*real) ? Value(truncate(*real)) : fallback;
}

Value filter_float(Runtime&, const Value& value, const Arguments& arguments) {
  const auto bound = bind(arguments, {"default"}, "the filter 'float'");
  if (value.is_undefined()) fail_value(undefined_reason(value));
  if (value.is_number()) return Value(value.number());
  if (value.is_string()) {
    if (const auto parsed = parse_float(value.text())) return Value(*parsed);
  }
  return bound[0] != nullptr ? *bound[0] : Value(0.0);
}

Value filter_abs(Runtime&, const Value& value, const Arguments& arguments) {
  bind(arguments, {}, "the filter 'abs'");
  if (value.is(Kind::kFloat)) return Value(std::fabs(value.number()));
  if (!value.is_integral()) fail_value("a ", type_name(value), " has no absolute value");
  return value.integer() < 0 ? negate(value) : Value(value.integer());
}

Value round_integer(int64_t value, int64_t precision) {
  if (precision >= 0) return Value(value);
  if (precision < -18) return Value(int64_t{0});
  int64_t unit = 1;
  for (int64_t i = precision; i < 0; ++i) unit *= 10;
  const int64_t rest = ((value % unit) + unit) % unit;
  int64_t down = 0;
  if (__builtin_sub_overflow(value, rest, &down)) fail_limit("a number that does not fit 64 bits");
  const bool up = rest * 2 > unit || (rest * 2 == unit && (down / unit) % 2 != 0);
  if (up && __builtin_add_overflow(down, unit, &down))
    fail_limit("a number that does not fit 64 bits");
  return Value(down);
}

double round_float(double value, int64_t precision) {
  if (!std::isfinite(value) || precision > 340) return value;
  if (precision < 0) {
    const double unit = std::pow(10.0, static_cast<double>(std::min<int64_t>(-precision, 310)));
    return std::nearbyint(value / unit) * unit;
  }
  // The decimal expansion of a double is exact, so this rounds correctly, half to even.
  return std::strtod(fmt::format("{:.{}f}", value, precision).c_str(), nullptr);
}

Value filter_round(Runtime&, const Value& value, const Arguments& arguments) {
  const auto bound = bind(arguments, {"precision", "method"}, "the filter 'round'");
  const int64_t precision = integer_argument(bound[0], 0, "precision");
  const std::string method =
      bound[1] == nullptr ? "common" : text_argument(*bound[1], "method").bytes();
  if (method != "common" && method != "ceil" && method != "floor")
    fail_value("the method of 'round' must be common, ceil or floor");
  if (!value.is_number()) fail_value("a ", type_name(value), " cannot be rounded");
  if (method == "common") {
    return value.is_integral() ? round_integer(value.integer(), precision)
                               : Value(round_float(value.number(), precision));
  }
  if (!std::isfinite(value.number())) fail_value("infinity and nan cannot be rounded");
  const double unit = std::pow(10.0, static_cast<double>(precision));
  const double scaled = value.number() * unit;
  return Value((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit);
}

Value filter_default(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = bind(arguments, {"default_value", "boolean"}, "the filter 'default'");
  const bool falsy_too = bound[1] != nullptr && truth(*bound[1]);
  if (!value.is_undefined() && !(falsy_too && !truth(value))) return value;
  return bound[0] != nullptr ? *bound[0] : runtime.empty_string();
}

Value filter_length(Runtime& runtime, const Value& value, const Arguments& arguments) {
  bind(arguments, {}, "the filter 'length'");
  return Value(runtime.length_of(value));
}

Value filter_string(Runtime& runtime, const Value& value, const Arguments& arguments) {
  bind(arguments, {}, "the filter 'string'");
  return value.is_string() ? value : runtime.string(runtime.to_text(value));
}

Value filter_safe(Runtime& runtime, const Value& value, const Arguments& arguments) {
  bind(arguments, {}, "the filter 'safe'");
  return runtime.string(runtime.to_text(value), true);
}

Value filter_escape(Runtime& runtime, const Value& value, const Arguments& arguments) {
  bind(arguments, {}, "the filter 'escape'");
  if (value.is_string() && value.get<std::shared_ptr<const StringObject>>()->markup) return value;
  return runtime.string(escape_html(runtime.to_text(value)), true);
}

Value filter_trim(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = bind(arguments, {"chars"}, "the filter 'trim'");
  const Text* characters =
      bound[0] == nullptr || bound[0]->is_none() ? nullptr : &text_argument(*bound[0], "chars");
  return runtime.string(strip_text(runtime.to_text(value), characters, true, true));
}

Value filter_upper(Runtime& runtime, const Value& value, const Arguments& arguments) {
  bind(arguments, {}, "the filter 'upper'");
  return runtime.string(map_characters(runtime, runtime.to_text(value), true));
}

Value filter_lower(Runtime& runtime, const Value& value, const Arguments& arguments) {
  bind(arguments, {}, "the filter 'lower'");
  return runtime.string(map_characters(runtime, runtime.to_text(value), false));
}

Value filter_capitalize(Runtime& runtime, const Value& value, const Arguments& arguments) {
  bind(arguments, {}, "the filter 'capitalize'");
  return runtime.string(capitalize_text(runtime, runtime.to_text(value)));
}

// Words begin behind spaces, '-' and opening brackets; unlike str.title, not behind an apostrophe.
Value filter_title(Runtime& runtime, const Value& value, const Arguments& arguments) {
  bind(arguments, {}, "the filter 'title'");
  const Text text = runtime.to_text(value);
  Text out;
  size_t word = 0;
  const auto flush = [&](size_t end) {
    if (word >= end) return;
    size_t rest = word;
    next_code_point(text.bytes(), &rest);
    out.append(map_characters(runtime, text.slice(word, rest), true));
    out.append(map_characters(runtime, text.slice(rest, end), false));
  };
  for (size_t i = 0; i < text.size();) {
    const size_t at = i;
    const uint32_t c = next_code_point(text.bytes(), &i);
    const bool separator =
        is_space(c) || (c < 0x80 && std::string_view("-({[<").find(static_cast<char>(c)) !=
                                        std::string_view::npos);
    if (!separator) continue;
    flush(at);
    out.append(text, at, i);
    word = i;
  }
  flush(text.size());
  return runtime.string(std::move(out));
}

Value filter_replace(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = bind(arguments, {"old", "new", "count"}, "the filter 'replace'", 2);
  const int64_t count =
      bound[2] != nullptr && bound[2]->is_none() ? -1 : integer_argument(bound[2], -1, "count");
  return runtime.string(replace_text(runtime, runtime.to_text(value), runtime.to_text(*bound[0]),
                                     runtime.to_text(*bound[1]), count));
}

Value filter_indent(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = bind(arguments, {"width", "first", "blank"}, "the filter 'indent'");
  if (value.is_undefined()) fail_value(undefined_reason(value));
  Text text = text_argument(value, "the value of 'indent'");
  Text indent;
  if (bound[0] != nullptr && bound[0]->is_string()) {
    indent = bound[0]->text();
  } else {
    const int64_t width = integer_argument(bound[0], 4, "width");
    if (width > kMaxPadding) fail_limit("'indent' by more than ", kMaxPadding);
    indent.append(std::string(static_cast<size_t>(std::max<int64_t>(0, width)), ' '), true);
  }
  const bool first = bound[1] != nullptr && truth(*bound[1]);
  const bool blank = bound[2] != nullptr && truth(*bound[2]);
  text.append("\n", true);  // so that a text ending in a newline keeps it
  Text out = first ? indent : Text();
  bool begun = false;
  for (const Text& line : split_lines(runtime, text, false)) {
    if (begun) {
      out.append("\n", true);
      runtime.ledger.step(1 + indent.size() / kTextBytesPerStep);
      if (blank || !line.empty()) out.append(indent);
    }
    begun = true;
    out.append(line);
    if (out.size() > kMaxStringBytes)
      fail_limit("a string would be longer than ", human_bytes(kMaxStringBytes));
  }
  return runtime.string(std::move(out));
}

Value filter_wordcount(Runtime& runtime, const Value& value, const Arguments& arguments) {
  bind(arguments, {}, "the filter 'wordcount'");
  const Text text = runtime.to_text(value);
  runtime.ledger.step(text.size() / 16);
  int64_t words = 0;
  bool inside = false;
  for (size_t i = 0; i < text.size();) {
    const uint32_t c = next_code_point(text.bytes(), &i);
    const bool word = c == '_' || is_alpha(c) || is_numeric(c);
    if (word && !inside) ++words;
    inside = word;
  }
  return Value(words);
}

Value filter_format(Runtime& runtime, const Value& value, const Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.keywords.empty())
    fail_value("'format' takes positions or keywords, not both");
  const Text format = runtime.to_text(value);
  if (arguments.keywords.empty())
    return format_percent(runtime, format, runtime.tuple(arguments.positional));
  auto dict = std::make_shared<Dict>();
  for (const auto& [name, item] : arguments.keywords)
    dict->set(runtime.string(name, true), item, &runtime.ledger);
  return format_percent(runtime, format, runtime.dict(std::move(dict)));
}

Value filter_center(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = bind(arguments, {"width"}, "the filter 'center'");
  Arguments width;
  width.positional.push_back(bound[0] != nullptr ? *bound[0] : Value(int64_t{80}));
  return call_method(runtime, runtime.string(runtime.to_text(value)), "center", width);
}

Value filter_attr(Runtime& runtime, const Value& value, const Arguments& arguments) {
  const auto bound = bind(arguments, {"name"}, "the filter 'attr'", 1);
  const std::string& name = text_argument(*bound[0], "name").bytes();
  if (value.is(Kind::kDict) && find_method(value, name) == MethodState::kAbsent) {
    return Value::undefined("'attr' does not look at the items of a dict");
  }
  return get_attribute(runtime, value, name);
}

Value filter_urlencode(Runtime& runtime, const Value& value, const Arguments& arguments) {
  bind(arguments, {}, "the filter 'urlencode'");
  if (value.is(Kind::kDict) || value.is(Kind::kSequence) || value.is(Kind::kIterator))
    fail_unsupported("'urlencode' of a ", type_name(value));
  const Text text = runtime.to_text(value);
  Text out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text.bytes()[i]);
    const bool plain =
        c < 0x80 && (std::isalnum(c) || std::string_view("_.-~/").find(static_cast<char>(c)) !=
                                            std::string_view::npos);
    out.append(plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c),
               text.trusted_at(i));
  }
  runtime.ledger.step(text.size() / 16);
  return runtime.string(std::move(out));
}

constexpr FilterEntry kFilters[] = {
    {"abs", filter_abs},
    {"attr", filter_attr},
    {"batch", filter_batch},
    {"capitalize", filter_capitalize},
    {"center", filter_center},
    {"count", filter_length},
    {"d", filter_default},
    {"default", filter_default},
    {"dictsort", filter_dictsort},
    {"e", filter_escape},
    {"escape", filter_escape},
    {"first", filter_first},
    {"float", filter_float},
    {"format", filter_format},
    {"indent", filter_indent},
    {"int", filter_int},
    {"items", filter_items},
    {"join", filter_join},
    {"last", filter_last},
    {"length", filter_length},
    {"list", filter_list},
    {"lower", filter_lower},
    {"map", filter_map},
    {"max", filter_max},
    {"min", filter_min},
    {"reject", filter_reject},
    {"rejectattr", filter_rejectattr},
    {"replace", filter_replace},
    {"reverse", filter_reverse},
    {"round", filter_round},
    {"safe", filter_safe},
    {"select", filter_select},
    {"selectattr", filter_selectattr},
    {"sort", filter_sort},
    {"string", filter_string},
    {"sum", filter_sum},
    {"title", filter_title},
    {"tojson", filter_tojson},
    {"trim", filter_trim},
    {"unique", filter_unique},
    {"upper", filter_upper},
    {"urlencode", filter_urlencode},
    {"wordcount", filter_wordcount},
};

}  // namespace

const FilterEntry* find_filter(std::string_view name) {
  const auto* found = std::find_if(std::begin(kFilters), std::end(kFilters),
                                   [name](const FilterEntry& entry) { return entry.name == name; });
  return found == std::end(kFilters) ? nullptr : found;
}

}  // namespace topknot::chat
