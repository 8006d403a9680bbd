#include "tokenizer/byte_alphabet.h"

#include <array>

#include "base/strings.h"

namespace topknot::tokenizer {
namespace {

constexpr uint32_t kFirstShifted = 256;
constexpr uint32_t kShiftedCount = 68;

constexpr bool stands_for_itself(uint32_t byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) ||
         (byte >= 174 && byte <= 255);
}

struct Tables {
  std::array<uint32_t, 256> code_point{};
  std::array<uint8_t, kShiftedCount> shifted_byte{};
};

constexpr Tables make_tables() {
  Tables tables;
  uint32_t shifted = 0;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    if (stands_for_itself(byte)) {
      tables.code_point[byte] = byte;
    } else {
      tables.shifted_byte[shifted] = static_cast<uint8_t>(byte);
      tables.code_point[byte] = kFirstShifted + shifted++;
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();
static_assert(kTables.code_point[' '] == 0x120 && kTables.code_point['\n'] == 0x10A);
static_assert(kTables.code_point[0xAD] == kFirstShifted + kShiftedCount - 1);

// Length in bytes of the code point that starts with `lead`, in valid UTF-8.
size_t sequence_length(uint8_t lead) {
  if (lead < 0x80) return 1;
  if (lead < 0xE0) return 2;
  return lead < 0xF0 ? 3 : 4;
}

}  // namespace

uint32_t byte_to_code_point(uint8_t byte) { return kTables.code_point[byte]; }

std::optional<uint8_t> code_point_to_byte(uint32_t code_point) {
  if (code_point < 256) {
    if (stands_for_itself(code_point)) return static_cast<uint8_t>(code_point);
    return std::nullopt;
  }
  if (code_point - kFirstShifted < kShiftedCount) {
    return kTables.shifted_byte[code_point - kFirstShifted];
  }
  return std::nullopt;
}

std::string bytes_to_alphabet(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) append_utf8(&text, byte_to_code_point(static_cast<uint8_t>(byte)));
  return text;
}

void append_alphabet_bytes(std::string_view text, std::string* bytes) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<uint8_t>(text[i]);
    const size_t length = sequence_length(lead);
    std::optional<uint8_t> byte;  // the alphabet ends at U+0143: one or two bytes of UTF-8
    if (length == 1) byte = code_point_to_byte(lead);
    if (length == 2) {
      const auto next = static_cast<uint8_t>(text[i + 1]);
      byte = code_point_to_byte((static_cast<uint32_t>(lead & 0x1F) << 6) | (next & 0x3F));
    }
    if (byte) {
      *bytes += static_cast<char>(*byte);
    } else {
      *bytes += text.substr(i, length);
    }
    i += length;
  }
}

}  // namespace topknot::tokenizer
