// Code points of valid UTF-8, and the character classes and case mappings of Python's str.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace topknot::chat {

// Reads the code point at *offset and moves *offset behind it. The text must be valid UTF-8.
uint32_t next_code_point(std::string_view text, size_t* offset);
size_t previous_code_point_offset(std::string_view text, size_t offset);
size_t code_point_count(std::string_view text);
// Byte offset of the code point of that index; text.size() for indices at or past the end.
size_t code_point_offset(std::string_view text, size_t index);
std::string encode_utf8(uint32_t code_point);

bool is_space(uint32_t c);       // str.isspace, which is also what str.strip and str.split remove
bool is_line_break(uint32_t c);  // where str.splitlines breaks
bool is_alpha(uint32_t c);
bool is_numeric(uint32_t c);
bool is_digit(uint32_t c);
bool is_decimal(uint32_t c);
bool is_lowercase(uint32_t c);
bool is_uppercase(uint32_t c);
bool is_printable(uint32_t c);  // shown as itself by repr()

// One code point can become up to three; unused places are 0.
using CaseMapping = std::array<uint32_t, 3>;
CaseMapping to_lower(uint32_t c);
CaseMapping to_upper(uint32_t c);
CaseMapping to_title(uint32_t c);

}  // namespace topknot::chat
