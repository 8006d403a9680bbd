#include "chat/lexer.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/strings.h"
#include "chat/limits.h"
#include "chat/unicode.h"

namespace topknot::chat {
namespace {

constexpr size_t kNone = std::string_view::npos;

bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_byte(char c) {
  return is_ascii_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// Line endings become \n and one at the very end is dropped.
std::string normalize_newlines(const std::string& source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
      out += '\n';
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)), rest_(source_) {}

  std::vector<Lexeme> run() {
    while (at_ < source_.size()) lex_root();
    push(Token::kEnd, at_, {});
    return std::move(out_);
  }

 private:
  // Moves the line counter on to `offset`; offsets are asked for in rising order.
  Position position(size_t offset) {
    for (; counted_ < offset; ++counted_) {
      if (source_[counted_] == '\n') {
        ++line_;
        line_begin_ = counted_ + 1;
      }
    }
    return {line_, static_cast<uint32_t>(offset - line_begin_ + 1)};
  }

  [[noreturn]] void fail_at(size_t offset, std::string why, Code code = Code::kCorrupt) {
    const Position at = position(std::max(offset, counted_));
    throw Failure{Error{.code = code,
                        .what = "the chat template is malformed",
                        .where = cat("line ", at.line, ", column ", at.column),
                        .why = std::move(why),
                        .fix = "pass a template that jinja2 accepts"}};
  }

  Lexeme& push(Token token, size_t offset, std::string_view text) {
    out_.push_back({.token = token, .at = position(offset), .text = std::string(text)});
    return out_.back();
  }

  bool starts(size_t offset, std::string_view text) const {
    return rest_.substr(std::min(offset, rest_.size()), text.size()) == text;
  }

  size_t skip_spaces(size_t offset) const {
    while (offset < source_.size()) {
      size_t next = offset;
      if (!is_space(next_code_point(rest_, &next))) break;
      offset = next;
    }
    return offset;
  }

  size_t skip_spaces_back(size_t begin, size_t end) const {
    while (end > begin) {
      const size_t before = previous_code_point_offset(rest_, end);
      size_t next = before;
      if (!is_space(next_code_point(rest_, &next))) break;
      end = before;
    }
    return end;
  }

  // End of the data in [at_, tag) after what the tag's sign, or lstrip_blocks, takes off.
  size_t data_end(size_t tag, char sign, bool lstrip) const {
    if (sign == '-') return skip_spaces_back(at_, tag);
    if (sign == '+' || !lstrip) return tag;
    const size_t newline = rest_.substr(at_, tag - at_).rfind('\n');
    const size_t begin = newline == kNone ? at_ : at_ + newline + 1;
    if (newline == kNone && !line_starting_) return tag;
    return skip_spaces(begin) >= tag ? begin : tag;
  }

  void push_data(size_t end) {
    if (end > at_) push(Token::kData, at_, rest_.substr(at_, end - at_));
  }

  char sign_at(size_t offset) const {
    return offset < source_.size() && (source_[offset] == '-' || source_[offset] == '+')
               ? source_[offset]
               : '\0';
  }

  // Offset behind the closing mark at `offset` and the whitespace it eats, or kNone. A block's mark
  // eats one newline (trim_blocks), a variable's none.
  size_t after_close(size_t offset, std::string_view mark, bool block) const {
    if (starts(offset, mark)) {
      offset += mark.size();
      return block && starts(offset, "\n") ? offset + 1 : offset;
    }
    if (starts(offset, "-") && starts(offset + 1, mark))
      return skip_spaces(offset + 1 + mark.size());
    if (block && starts(offset, "+") && starts(offset + 1, mark)) return offset + 1 + mark.size();
    return kNone;
  }

  void finish(size_t end) {
    line_starting_ = end > 0 && source_[end - 1] == '\n';
    at_ = end;
  }

  void lex_root() {
    size_t tag = at_;
    while ((tag = rest_.find('{', tag)) != kNone) {
      const char kind = tag + 1 < source_.size() ? source_[tag + 1] : '\0';
      if (kind == '{' || kind == '%' || kind == '#') break;
      ++tag;
    }
    if (tag == kNone) {
      push_data(source_.size());
      return finish(source_.size());
    }
    const char sign = sign_at(tag + 2);
    const size_t inside = tag + 2 + (sign == '\0' ? 0 : 1);
    push_data(data_end(tag, sign, source_[tag + 1] != '{'));
    switch (source_[tag + 1]) {
      case '{':
        push(Token::kVariableBegin, tag, {});
        return lex_expression(tag, inside, "}}", Token::kVariableEnd);
      case '#': return skip_comment(tag, inside);
      default:
        if (const size_t raw = raw_begin(inside); raw != kNone) return lex_raw(tag, raw);
        push(Token::kBlockBegin, tag, {});
        return lex_expression(tag, inside, "%}", Token::kBlockEnd);
    }
  }

  void skip_comment(size_t tag, size_t inside) {
    const size_t close = rest_.find("#}", inside);
    if (close == kNone) fail_at(tag, "a comment is not closed by #}");
    const bool has_sign = close > inside && sign_at(close - 1) != '\0';
    finish(after_close(has_sign ? close - 1 : close, "#}", true));
  }

  size_t raw_begin(size_t inside) const {
    const size_t word = skip_spaces(inside);
    if (!starts(word, "raw")) return kNone;
    const size_t close = skip_spaces(word + 3);
    if (starts(close, "%}")) return close + 2;  // trim_blocks does not reach here in jinja2
    return starts(close, "-%}") ? skip_spaces(close + 3) : kNone;
  }

  void lex_raw(size_t tag, size_t inside) {
    line_starting_ = source_[inside - 1] == '\n';
    at_ = inside;
    for (size_t open = rest_.find("{%", inside); open != kNone; open = rest_.find("{%", open + 1)) {
      const char sign = sign_at(open + 2);
      const size_t word = skip_spaces(open + 2 + (sign == '\0' ? 0 : 1));
      if (!starts(word, "endraw")) continue;
      const size_t end = after_close(skip_spaces(word + 6), "%}", true);
      if (end == kNone) continue;
      push_data(data_end(open, sign, true));
      return finish(end);
    }
    fail_at(tag, "a raw block is not closed by {% endraw %}");
  }

  void lex_expression(size_t tag, size_t inside, std::string_view mark, Token end_token) {
    std::string open;  // brackets not yet closed: a mark within them is operators
    for (size_t i = inside;;) {
      if (open.empty()) {
        if (const size_t end = after_close(i, mark, end_token == Token::kBlockEnd); end != kNone) {
          push(end_token, i, {});
          return finish(end);
        }
      }
      if (i >= source_.size()) fail_at(tag, cat("a tag is not closed by ", mark));
      const size_t after_spaces = skip_spaces(i);
      i = after_spaces > i ? after_spaces : lex_token(i, &open);
    }
  }

  size_t lex_token(size_t i, std::string* open) {
    const char c = source_[i];
    if (is_ascii_digit(c)) return lex_number(i);
    if (is_name_byte(c)) return lex_name(i);
    if (c == '\'' || c == '"') return lex_string(i);
    return lex_operator(i, open);
  }

  size_t lex_name(size_t i) {
    size_t end = i;
    while (end < source_.size() && is_name_byte(source_[end])) {
      const size_t begin = end;
      const uint32_t c = next_code_point(rest_, &end);
      if (c >= 0x80 && !is_alpha(c)) fail_at(begin, "a character that no name can have");
    }
    push(Token::kName, i, rest_.substr(i, end - i));
    return end;
  }

  // Digits with single underscores between them; `end` when there are none.
  size_t skip_digits(size_t i) const {
    while (i < source_.size() && is_ascii_digit(source_[i])) {
      ++i;
      if (i + 1 < source_.size() && source_[i] == '_' && is_ascii_digit(source_[i + 1])) ++i;
    }
    return i;
  }

  size_t exponent_end(size_t i) const {
    if (i >= source_.size() || (source_[i] != 'e' && source_[i] != 'E')) return kNone;
    const size_t digits = i + 1 + (sign_at(i + 1) == '\0' ? 0 : 1);
    const size_t end = skip_digits(digits);
    return end > digits ? end : kNone;
  }

  size_t lex_number(size_t i) {
    const size_t whole = skip_digits(i);
    size_t fraction = whole;
    if (starts(whole, ".") && skip_digits(whole + 1) > whole + 1) fraction = skip_digits(whole + 1);
    const size_t exponent = exponent_end(fraction);
    const size_t end = exponent != kNone ? exponent : fraction;
    // `a.0.1` is two subscripts, not one and a float.
    if (end > whole && (i == 0 || source_[i - 1] != '.')) return push_float(i, end);
    return lex_integer(i, whole);
  }

  std::string without_underscores(size_t begin, size_t end) const {
    std::string digits(rest_.substr(begin, end - begin));
    std::erase(digits, '_');
    return digits;
  }

  size_t push_float(size_t i, size_t end) {
    const std::string digits = without_underscores(i, end);
    double value = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (result.ec != std::errc())
      value = std::strtod(digits.c_str(), nullptr);  // 0 or inf, as Python
    push(Token::kFloat, i, {}).real = value;
    return end;
  }

  size_t lex_integer(size_t i, size_t decimal_end) {
    int base = 10;
    size_t begin = i;
    size_t end = decimal_end;
    const char mark = i + 1 < source_.size() ? static_cast<char>(source_[i + 1] | 0x20) : '\0';
    if (source_[i] == '0' && (mark == 'x' || mark == 'o' || mark == 'b')) {
      base = mark == 'x' ? 16 : mark == 'o' ? 8 : 2;
      size_t digit = i + 2;
      while (digit < source_.size() && (is_digit_of(source_[digit], base) ||
                                        (source_[digit] == '_' && digit + 1 < source_.size() &&
                                         is_digit_of(source_[digit + 1], base)))) {
        ++digit;
      }
      if (digit > i + 2) {
        begin = i + 2;
        end = digit;
      } else {
        base = 10;
      }
    }
    if (base == 10 && source_[i] == '0') {  // 007 is the number 00 followed by 7
      end = i + 1;
      while (end < decimal_end && (source_[end] == '0' || source_[end] == '_')) ++end;
    }
    const std::string digits = without_underscores(begin, end);
    int64_t value = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (result.ec != std::errc()) fail_at(i, "an integer over 64 bits", Code::kOutOfRange);
    push(Token::kInteger, i, {}).integer = value;
    return end;
  }

  static bool is_digit_of(char c, int base) {
    if (is_ascii_digit(c)) return c - '0' < base;
    return base == 16 && ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
  }

  size_t lex_string(size_t i) {
    const char quote = source_[i];
    std::string value;
    size_t at = i + 1;
    while (at < source_.size() && source_[at] != quote) {
      if (source_[at] == '\\' && at + 1 < source_.size()) {
        at = lex_escape(at + 1, &value);
      } else {
        value += source_[at++];
      }
    }
    if (at >= source_.size()) fail_at(i, "a string is not closed");
    push(Token::kString, i, value);
    return at + 1;
  }

  // `at` is behind the backslash.
  size_t lex_escape(size_t at, std::string* value) {
    const char c = source_[at];
    static constexpr std::string_view kPlain = "\\'\"abfnrtv";
    static constexpr std::string_view kMeaning = "\\'\"\a\b\f\n\r\t\v";
    if (const size_t plain = kPlain.find(c); plain != kNone) {
      *value += kMeaning[plain];
      return at + 1;
    }
    if (c == '\n') return at + 1;
    if (c >= '0' && c <= '7') {
      uint32_t code = 0;
      size_t end = at;
      while (end < at + 3 && end < source_.size() && source_[end] >= '0' && source_[end] <= '7') {
        code = code * 8 + static_cast<uint32_t>(source_[end++] - '0');
      }
      append_utf8(value, code);
      return end;
    }
    if (c == 'x' || c == 'u' || c == 'U')
      return lex_hex_escape(at, c == 'x' ? 2 : c == 'u' ? 4 : 8, value);
    if (c == 'N') fail_at(at, "\\N{...} in a string", Code::kUnsupported);
    *value += '\\';  // an unknown escape stands for itself
    return at;
  }

  size_t lex_hex_escape(size_t at, size_t digits, std::string* value) {
    const std::string_view hex = rest_.substr(at + 1, digits);
    uint32_t code = 0;
    const auto result = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
    if (hex.size() != digits || result.ptr != hex.data() + hex.size())
      fail_at(at, "a cut escape in a string");
    if (code > 0x10FFFF) fail_at(at, "an escape above U+10FFFF");
    if (code >= 0xD800 && code < 0xE000)
      fail_at(at, "half a surrogate pair in a string", Code::kUnsupported);
    append_utf8(value, code);
    return at + 1 + digits;
  }

  size_t lex_operator(size_t i, std::string* open) {
    static constexpr std::string_view kDouble[] = {"//", "**", "==", "!=", ">=", "<="};
    for (const std::string_view both : kDouble) {
      if (!starts(i, both)) continue;
      push(Token::kOperator, i, both);
      return i + 2;
    }
    const char c = source_[i];
    if (std::string_view("+-/*%~[](){}><=.:|,;").find(c) == kNone) {
      fail_at(i, cat("unexpected character '", printable(rest_.substr(i, 1)), "'"));
    }
    if (c == '(' || c == '[' || c == '{') *open += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open->empty() || open->back() != c) fail_at(i, cat("unexpected '", c, "'"));
      open->pop_back();
    }
    push(Token::kOperator, i, rest_.substr(i, 1));
    return i + 1;
  }

  const std::string source_;
  const std::string_view rest_;
  size_t at_ = 0;
  bool line_starting_ = true;  // the tag before ended with a newline
  size_t counted_ = 0, line_begin_ = 0;
  uint32_t line_ = 1;
  std::vector<Lexeme> out_;
};

}  // namespace

std::vector<Lexeme> tokenize(const std::string& source) {
  if (source.size() > kMaxTemplateBytes) {
    fail_limit("a template of ", human_bytes(source.size()), " is over ",
               human_bytes(kMaxTemplateBytes));
  }
  if (const size_t bad = find_invalid_utf8(source); bad != kNone) {
    fail(Code::kCorrupt, "the chat template is malformed", cat("byte ", bad, " is not UTF-8"));
  }
  return Lexer(normalize_newlines(source)).run();
}

}  // namespace topknot::chat
