// The alphabet of byte-level BPE: each byte is written in a vocabulary as one printable code point.
// Bytes 33..126, 161..172 and 174..255 stand for themselves; the other 68, in increasing order, are
// U+0100..U+0143, so space is U+0120 and newline U+010A.
// Source: Radford et al. 2019 (GPT-2), section 2.2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace topknot::tokenizer {

// The code point that stands for `byte`.
uint32_t byte_to_code_point(uint8_t byte);

// The byte a code point stands for; none outside the alphabet.
std::optional<uint8_t> code_point_to_byte(uint32_t code_point);

// Vocabulary text of a run of bytes.
std::string bytes_to_alphabet(std::string_view bytes);

// Appends the bytes that a vocabulary text stands for. Code points outside the alphabet are kept as
// they are: some files mark plain-text tokens as normal ones. `text` is valid UTF-8.
void append_alphabet_bytes(std::string_view text, std::string* bytes);

}  // namespace topknot::tokenizer
