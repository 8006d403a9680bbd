#include "chat/unicode.h"

#include <algorithm>
#include <iterator>

#include "base/strings.h"

namespace topknot::chat {
namespace {

struct ClassRow {
  uint32_t first, last, stride;
};
struct CaseRow {
  uint32_t first, last, stride;
  int32_t delta;
};
struct SpecialRow {
  uint32_t from;
  uint32_t to[3];
};

#include "chat/unicode_tables.inc"

template <class Row, size_t kCount>
const Row* find_row(const Row (&rows)[kCount], uint32_t c) {
  const Row* after =
      std::upper_bound(std::begin(rows), std::end(rows), c,
                       [](uint32_t value, const Row& row) { return value < row.first; });
  if (after == std::begin(rows)) return nullptr;
  const Row* row = after - 1;
  return c <= row->last && (c - row->first) % row->stride == 0 ? row : nullptr;
}

template <size_t kCount>
CaseMapping map_case(const CaseRow (&rows)[kCount], uint32_t c) {
  const CaseRow* row = find_row(rows, c);
  return {row == nullptr ? c : static_cast<uint32_t>(static_cast<int32_t>(c) + row->delta), 0, 0};
}

template <size_t kCount>
const SpecialRow* find_special(const SpecialRow (&rows)[kCount], uint32_t c) {
  const SpecialRow* row =
      std::lower_bound(std::begin(rows), std::end(rows), c,
                       [](const SpecialRow& r, uint32_t value) { return r.from < value; });
  return row != std::end(rows) && row->from == c ? row : nullptr;
}

constexpr bool ascii_between(uint32_t c, char low, char high) {
  return c >= static_cast<uint32_t>(low) && c <= static_cast<uint32_t>(high);
}

}  // namespace

uint32_t next_code_point(std::string_view text, size_t* offset) {
  const auto byte = [&text](size_t at) {
    return static_cast<uint32_t>(static_cast<unsigned char>(text[at]));
  };
  const size_t i = *offset;
  const uint32_t lead = byte(i);
  if (lead < 0x80) {
    *offset = i + 1;
    return lead;
  }
  if (lead < 0xE0) {
    *offset = i + 2;
    return (lead & 0x1F) << 6 | (byte(i + 1) & 0x3F);
  }
  if (lead < 0xF0) {
    *offset = i + 3;
    return (lead & 0x0F) << 12 | (byte(i + 1) & 0x3F) << 6 | (byte(i + 2) & 0x3F);
  }
  *offset = i + 4;
  return (lead & 0x07) << 18 | (byte(i + 1) & 0x3F) << 12 | (byte(i + 2) & 0x3F) << 6 |
         (byte(i + 3) & 0x3F);
}

size_t previous_code_point_offset(std::string_view text, size_t offset) {
  do {
    --offset;
  } while (offset > 0 && (static_cast<unsigned char>(text[offset]) & 0xC0) == 0x80);
  return offset;
}

size_t code_point_count(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

size_t code_point_offset(std::string_view text, size_t index) {
  size_t offset = 0;
  for (; offset < text.size() && index > 0; --index) next_code_point(text, &offset);
  return offset;
}

std::string encode_utf8(uint32_t code_point) {
  std::string out;
  append_utf8(&out, code_point);
  return out;
}

bool is_space(uint32_t c) {
  if (c < 0x80) return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_line_break(uint32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

bool is_lowercase(uint32_t c) {
  return c < 0x80 ? ascii_between(c, 'a', 'z') : find_row(kLowercase, c) != nullptr;
}
bool is_uppercase(uint32_t c) {
  return c < 0x80 ? ascii_between(c, 'A', 'Z') : find_row(kUppercase, c) != nullptr;
}
bool is_alpha(uint32_t c) {
  return c < 0x80 ? is_lowercase(c) || is_uppercase(c) : find_row(kAlpha, c) != nullptr;
}
bool is_numeric(uint32_t c) {
  return c < 0x80 ? ascii_between(c, '0', '9') : find_row(kNumeric, c) != nullptr;
}
bool is_digit(uint32_t c) {
  return c < 0x80 ? ascii_between(c, '0', '9') : find_row(kDigit, c) != nullptr;
}
bool is_decimal(uint32_t c) {
  return c < 0x80 ? ascii_between(c, '0', '9') : find_row(kDecimal, c) != nullptr;
}
bool is_printable(uint32_t c) {
  return c < 0x80 ? c >= 0x20 && c < 0x7F : find_row(kUnprintable, c) == nullptr;
}

CaseMapping to_lower(uint32_t c) {
  if (c < 0x80) return {is_uppercase(c) ? c + 32 : c, 0, 0};
  if (c == 0x130) return {0x69, 0x307, 0};  // the only letter whose lower case is two code points
  return map_case(kToLower, c);
}

CaseMapping to_upper(uint32_t c) {
  if (c < 0x80) return {is_lowercase(c) ? c - 32 : c, 0, 0};
  if (const SpecialRow* row = find_special(kSpecialUpper, c))
    return {row->to[0], row->to[1], row->to[2]};
  return map_case(kToUpper, c);
}

CaseMapping to_title(uint32_t c) {
  if (c < 0x80) return to_upper(c);
  if (const SpecialRow* row = find_special(kSpecialTitle, c))
    return {row->to[0], row->to[1], row->to[2]};
  return map_case(kToTitle, c);
}

}  // namespace topknot::chat
