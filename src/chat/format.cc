// format % values and str.format: Python's two ways of formatting, over the values templates have.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "chat/operators.h"
#include "chat/unicode.h"

namespace topknot::chat {
namespace {

struct Spec {
  bool left = false, zero = false, plus = false, space = false, alternate = false, grouped = false;
  char align = 0;
  std::string fill = " ";
  int64_t width = 0;
  int64_t precision = -1;
  char type = 0;
};

int64_t parse_number(const std::string& text, size_t* at) {
  int64_t number = 0;
  while (*at < text.size() && text[*at] >= '0' && text[*at] <= '9') {
    number = number * 10 + (text[(*at)++] - '0');
    if (number > kMaxPadding) fail_limit("a format wider than ", kMaxPadding);
  }
  return number;
}

std::string digits_of(uint64_t magnitude, char type) {
  switch (type) {
    case 'x': return fmt::format("{:x}", magnitude);
    case 'X': return fmt::format("{:X}", magnitude);
    case 'o': return fmt::format("{:o}", magnitude);
    case 'b': return fmt::format("{:b}", magnitude);
    default: return cat(magnitude);
  }
}

std::string group_thousands(std::string digits) {
  for (size_t at = digits.find_first_not_of("0123456789") == std::string::npos
                       ? digits.size()
                       : digits.find_first_not_of("0123456789");
       at > 3; at -= 3) {
    digits = cat(digits.substr(0, at - 3), ",", digits.substr(at - 3));
  }
  return digits;
}

std::string magnitude_of_float(double value, const Spec& spec) {
  const double magnitude = std::fabs(value);
  const char type = spec.type == 0 ? 'g' : spec.type;
  if (!std::isfinite(value)) {
    const bool upper = type == 'F' || type == 'E' || type == 'G';
    return std::isnan(value) ? (upper ? "NAN" : "nan") : (upper ? "INF" : "inf");
  }
  const int precision = static_cast<int>(spec.precision < 0 ? 6 : spec.precision);
  const char format[] = {'%', '.', '*', type, '\0'};
  std::string out(static_cast<size_t>(std::snprintf(nullptr, 0, format, precision, magnitude)),
                  '\0');
  std::snprintf(out.data(), out.size() + 1, format, precision, magnitude);
  return out;
}

// Sign, digits and zero padding of a number.
std::string number_text(bool negative, std::string digits, const Spec& spec) {
  const std::string sign = negative ? "-" : spec.plus ? "+" : spec.space ? " " : "";
  std::string prefix;
  if (spec.alternate &&
      (spec.type == 'x' || spec.type == 'X' || spec.type == 'o' || spec.type == 'b')) {
    prefix = cat("0", spec.type);
  }
  if (spec.grouped) digits = group_thousands(std::move(digits));
  const auto used = static_cast<int64_t>(sign.size() + prefix.size() + digits.size());
  if (spec.zero && !spec.left && spec.align == 0 && used < spec.width) {
    digits.insert(0, std::string(static_cast<size_t>(spec.width - used), '0'));
  }
  return cat(sign, prefix, digits);
}

std::string integer_text(int64_t value, Spec spec) {
  const bool negative = value < 0;
  const uint64_t magnitude =
      negative ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  std::string digits = digits_of(magnitude, spec.type);
  if (spec.precision > static_cast<int64_t>(digits.size())) {
    digits.insert(0, std::string(static_cast<size_t>(spec.precision) - digits.size(), '0'));
  }
  return number_text(negative, std::move(digits), spec);
}

Text pad_text(const Text& text, const Spec& spec, char default_align) {
  const int64_t missing =
      std::max<int64_t>(0, spec.width - static_cast<int64_t>(code_point_count(text.bytes())));
  const char align = spec.align != 0 ? spec.align : spec.left ? '<' : default_align;
  const int64_t left = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  Text out;
  for (int64_t i = 0; i < left; ++i) out.append(spec.fill, true);
  out.append(text);
  for (int64_t i = left; i < missing; ++i) out.append(spec.fill, true);
  return out;
}

Text cut_text(const Text& text, int64_t precision) {
  if (precision < 0) return text;
  return text.slice(0, code_point_offset(text.bytes(), static_cast<size_t>(precision)));
}

class PercentFormat {
 public:
  PercentFormat(Runtime& runtime, const Text& format, const Value& values)
      : runtime_(runtime), format_(format), bytes_(format.bytes()), values_(values) {
    tuple_ = values.is(Kind::kSequence) && values.sequence().flavor == Flavor::kTuple;
  }

  Value run() {
    size_t copied = 0;
    for (size_t at = bytes_.find('%'); at != std::string::npos; at = bytes_.find('%', at)) {
      out_.append(format_, copied, at);
      at = directive(at + 1);
      copied = at;
      if (out_.size() > kMaxStringBytes)
        fail_limit("a string would be longer than ", human_bytes(kMaxStringBytes));
    }
    out_.append(format_, copied, bytes_.size());
    // What has a __getitem__ counts as a mapping, whose values need not all be used.
    const bool mapping =
        values_.is(Kind::kDict) || values_.is_undefined() ||
        (values_.is(Kind::kSequence) && (values_.sequence().flavor == Flavor::kList ||
                                         values_.sequence().flavor == Flavor::kRange));
    const size_t given = tuple_ ? values_.sequence().items.size() : 1;
    if (!mapping && used_ < given) fail_value("not all values were used by the format");
    return runtime_.string(std::move(out_));
  }

 private:
  const Value& next() {
    const size_t given = tuple_ ? values_.sequence().items.size() : 1;
    if (used_ >= given) fail_value("too few values for the format");
    return tuple_ ? values_.sequence().items[used_++] : (++used_, values_);
  }

  int64_t star_or_number(size_t* at) {
    if (*at >= bytes_.size() || bytes_[*at] != '*') return parse_number(bytes_, at);
    ++*at;
    const int64_t width = integer_argument(&next(), 0, "*");
    if (width > kMaxPadding || width < -kMaxPadding)
      fail_limit("a format wider than ", kMaxPadding);
    return width;
  }

  size_t directive(size_t at) {
    Spec spec;
    const Value* keyed = nullptr;
    if (at < bytes_.size() && bytes_[at] == '(') {
      const size_t close = bytes_.find(')', at);
      if (close == std::string::npos) fail_value("a format key is not closed");
      if (!values_.is(Kind::kDict)) fail_value("a format with keys needs a dict");
      keyed = values_.dict().find(std::string_view(bytes_).substr(at + 1, close - at - 1));
      if (keyed == nullptr) fail_value("a format key is missing");
      at = close + 1;
    }
    for (;
         at < bytes_.size() && std::string_view("-+ #0").find(bytes_[at]) != std::string_view::npos;
         ++at) {
      spec.left = spec.left || bytes_[at] == '-';
      spec.plus = spec.plus || bytes_[at] == '+';
      spec.space = spec.space || bytes_[at] == ' ';
      spec.alternate = spec.alternate || bytes_[at] == '#';
      spec.zero = spec.zero || bytes_[at] == '0';
    }
    spec.width = star_or_number(&at);
    if (spec.width < 0) {
      spec.left = true;
      spec.width = -spec.width;
    }
    if (at < bytes_.size() && bytes_[at] == '.')
      spec.precision = std::max<int64_t>(0, star_or_number(&++at));
    while (at < bytes_.size() && (bytes_[at] == 'l' || bytes_[at] == 'h' || bytes_[at] == 'L'))
      ++at;
    if (at >= bytes_.size()) fail_value("an incomplete format");
    spec.type = bytes_[at];
    if (spec.type == '%') {
      out_.append(format_, at, at + 1);
    } else {
      out_.append(pad_text(convert(spec, keyed != nullptr ? *keyed : next()), spec, '>'));
    }
    return at + 1;
  }

  Text convert(Spec spec, const Value& value) {
    switch (spec.type) {
      case 's': return cut_text(runtime_.to_text(value), spec.precision);
      case 'r': return cut_text(runtime_.repr(value), spec.precision);
      case 'd':
      case 'i':
      case 'u':
        if (value.is_undefined()) fail_value(undefined_reason(value));
        if (value.is(Kind::kFloat))
          return Text(integer_text(truncated(value.number()), spec), true);
        [[fallthrough]];
      case 'x':
      case 'X':
      case 'o':
        if (!value.is_integral())
          fail_value("'%", spec.type, "' needs a number, not a ", type_name(value));
        return Text(integer_text(value.integer(), spec), true);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        if (!value.is_number())
          fail_value("'%", spec.type, "' needs a number, not a ", type_name(value));
        return Text(number_text(std::signbit(value.number()) && !std::isnan(value.number()),
                                magnitude_of_float(value.number(), spec), spec),
                    true);
      case 'c': return character(value);
      default: fail_value("unknown format '%", printable(std::string_view(&spec.type, 1)), "'");
    }
  }

  static int64_t truncated(double value) {
    if (!(std::fabs(value) < 9.2e18)) fail_limit("a number that does not fit 64 bits");
    return static_cast<int64_t>(value);
  }

  static Text character(const Value& value) {
    if (value.is_string() && code_point_count(value.bytes()) == 1) return value.text();
    if (!value.is_integral()) fail_value("'%c' needs one character");
    const int64_t code = value.integer();
    if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
      fail_value("'%c' out of range");
    Text out;
    append_code_point(&out, static_cast<uint32_t>(code), false);
    return out;
  }

  Runtime& runtime_;
  const Text& format_;
  const std::string& bytes_;
  const Value& values_;
  bool tuple_ = false;
  size_t used_ = 0;
  Text out_;
};

class BraceFormat {
 public:
  BraceFormat(Runtime& runtime, const Text& format, const Arguments& arguments)
      : runtime_(runtime), format_(format), bytes_(format.bytes()), arguments_(arguments) {}

  Value run() {
    for (size_t at = 0; at < bytes_.size();) {
      const size_t brace = bytes_.find_first_of("{}", at);
      if (brace == std::string::npos) {
        out_.append(format_, at, bytes_.size());
        break;
      }
      out_.append(format_, at, brace);
      if (brace + 1 < bytes_.size() && bytes_[brace + 1] == bytes_[brace]) {
        out_.append(format_, brace, brace + 1);
        at = brace + 2;
      } else {
        if (bytes_[brace] == '}') fail_value("a single '}' in a format");
        at = field(brace + 1);
      }
      if (out_.size() > kMaxStringBytes)
        fail_limit("a string would be longer than ", human_bytes(kMaxStringBytes));
    }
    return runtime_.string(std::move(out_));
  }

 private:
  size_t field(size_t at) {
    const size_t close = bytes_.find('}', at);
    if (close == std::string::npos) fail_value("a '{' in a format is not closed");
    const std::string inside = bytes_.substr(at, close - at);
    if (inside.find('{') != std::string::npos) fail_unsupported("fields within fields of a format");
    const size_t colon = inside.find(':');
    std::string name = inside.substr(0, colon);
    char conversion = 0;
    if (const size_t mark = name.find('!'); mark != std::string::npos) {
      if (mark + 2 != name.size()) fail_value("a bad conversion in a format");
      conversion = name[mark + 1];
      name.resize(mark);
    }
    Value value = lookup(name);
    if (conversion == 'r') {
      value = runtime_.string(runtime_.repr(value));
    } else if (conversion == 's') {
      value = runtime_.string(runtime_.to_text(value));
    } else if (conversion != 0) {
      fail_unsupported("the conversion '!", printable(std::string_view(&conversion, 1)),
                       "' of a format");
    }
    out_.append(apply(value, colon == std::string::npos ? "" : inside.substr(colon + 1)));
    return close + 1;
  }

  Value lookup(const std::string& name) {
    size_t end = name.find_first_of(".[");
    const std::string first = name.substr(0, end);
    Value value = base(first);
    while (end != std::string::npos && end < name.size()) {
      const bool item = name[end] == '[';
      const size_t stop = item ? name.find(']', end) : name.find_first_of(".[", end + 1);
      if (item && stop == std::string::npos) fail_value("a '[' in a format is not closed");
      const std::string part =
          name.substr(end + 1, stop == std::string::npos ? stop : stop - end - 1);
      if (part.empty()) fail_value("an empty attribute in a format");
      int64_t index = 0;
      const auto number = std::from_chars(part.data(), part.data() + part.size(), index);
      const bool numeric =
          number.ec == std::errc() && number.ptr == part.data() + part.size() && part[0] != '-';
      value = !item     ? get_attribute(runtime_, value, part)
              : numeric ? get_item(runtime_, value, Value(index))
                        : get_item(runtime_, value, runtime_.string(part, false));
      end = item ? stop + 1 : stop;
    }
    return value;
  }

  Value base(const std::string& first) {
    int64_t index = 0;
    const auto number = std::from_chars(first.data(), first.data() + first.size(), index);
    const bool numeric = !first.empty() && number.ec == std::errc() &&
                         number.ptr == first.data() + first.size() && first[0] != '-';
    if (first.empty() || numeric) {
      const bool automatic = first.empty();
      if (automatic ? manual_ : next_ > 0)
        fail_value("a format mixes numbered and unnumbered fields");
      manual_ = manual_ || !automatic;
      const size_t place = automatic ? next_++ : static_cast<size_t>(index);
      if (place >= arguments_.positional.size()) fail_value("too few values for the format");
      return arguments_.positional[place];
    }
    for (const auto& [key, value] : arguments_.keywords) {
      if (key == first) return value;
    }
    fail_value("the format has no value for '", printable(first), "'");
  }

  static Spec parse_spec(const std::string& text) {
    Spec spec;
    size_t at = 0;
    size_t second = 0;
    if (!text.empty()) next_code_point(text, &second);
    const auto is_align = [&text](size_t i) {
      return i < text.size() && std::string_view("<>^=").find(text[i]) != std::string_view::npos;
    };
    if (second > 0 && is_align(second)) {
      spec.fill = text.substr(0, second);
      spec.align = text[second];
      at = second + 1;
    } else if (is_align(0)) {
      spec.align = text[at++];
    }
    if (spec.align == '=') fail_unsupported("the alignment '=' of a format");
    const auto skip = [&](char c) {
      return at < text.size() && text[at] == c ? (++at, true) : false;
    };
    spec.plus = skip('+');
    spec.space = !spec.plus && skip(' ');
    if (!spec.plus && !spec.space) skip('-');
    spec.alternate = skip('#');
    spec.zero = skip('0');
    spec.width = parse_number(text, &at);
    spec.grouped = skip(',');
    if (skip('.')) {
      const size_t begin = at;
      spec.precision = parse_number(text, &at);
      if (at == begin) fail_value("a format's precision is missing");
    }
    if (at < text.size()) spec.type = text[at++];
    if (at < text.size()) fail_value("a bad format '", printable(text), "'");
    return spec;
  }

  Text apply(const Value& value, const std::string& text) {
    if (text.empty()) return runtime_.to_text(value);
    const Spec spec = parse_spec(text);
    const bool float_type =
        spec.type != 0 && std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos;
    const bool integer_type =
        spec.type != 0 && std::string_view("dxXob").find(spec.type) != std::string_view::npos;
    if (value.is_string() && (spec.type == 0 || spec.type == 's')) {
      if (spec.zero || spec.plus || spec.grouped)
        fail_unsupported("number flags in a format of a string");
      return pad_text(cut_text(value.text(), spec.precision), spec, '<');
    }
    if (value.is_integral() && (integer_type || (spec.type == 0 && value.is(Kind::kInt)))) {
      if (spec.precision >= 0) fail_value("a precision in a format of an integer");
      return pad_text(Text(integer_text(value.integer(), spec), true), spec, '>');
    }
    if (value.is_number() && float_type)
      return pad_text(Text(float_text(value.number(), spec), true), spec, '>');
    if (value.is(Kind::kFloat) && spec.type == 0 && spec.precision < 0) {
      const double number = value.number();
      return pad_text(
          Text(number_text(std::signbit(number), float_repr(std::fabs(number)), spec), true), spec,
          '>');
    }
    fail_unsupported("the format '", printable(text), "' of a ", type_name(value));
  }

  static std::string float_text(double value, Spec spec) {
    const bool negative = std::signbit(value) && !std::isnan(value);
    if (spec.type != '%') return number_text(negative, magnitude_of_float(value, spec), spec);
    Spec fixed = spec;
    fixed.type = 'f';
    return number_text(negative, cat(magnitude_of_float(value * 100, fixed), "%"), spec);
  }

  Runtime& runtime_;
  const Text& format_;
  const std::string& bytes_;
  const Arguments& arguments_;
  bool manual_ = false;
  size_t next_ = 0;
  Text out_;
};

}  // namespace

Value format_percent(Runtime& runtime, const Text& format, const Value& values) {
  return PercentFormat(runtime, format, values).run();
}

Value format_braces(Runtime& runtime, const Text& format, const Arguments& arguments) {
  return BraceFormat(runtime, format, arguments).run();
}

}  // namespace topknot::chat
