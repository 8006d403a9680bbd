// Text helpers shared by every layer: joining, printable forms of hostile bytes, UTF-8.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace topknot {

// cat("needs ", 3, " bytes"): every argument in fmt's default form.
template <class... Args>
std::string cat(const Args&... args) {
  fmt::memory_buffer out;
  (fmt::format_to(std::back_inserter(out), "{}", args), ...);
  return fmt::to_string(out);
}

// Bytes from a file or socket made safe to print: control characters and invalid UTF-8 become \xNN,
// and at most `max_bytes` are shown, then "...".
std::string printable(std::string_view bytes, size_t max_bytes = 80);

// 1536 -> "1.5 KiB". 1,234,567 bytes -> "1.2 MiB".
std::string human_bytes(uint64_t bytes);

// The candidates nearest to `name` by edit distance, best first, at most `limit`; none when all are
// far.
std::vector<std::string> nearest(std::string_view name, std::span<const std::string> candidates,
                                 size_t limit = 3);

// Offset of the first byte that breaks UTF-8 (RFC 3629: no surrogates, no overlong forms), or npos.
size_t find_invalid_utf8(std::string_view bytes);

// Longest prefix of `bytes` that does not end within a UTF-8 sequence that could still be
// completed. What a stream may print now; the rest is held back. Invalid bytes do not hold anything
// back.
size_t complete_utf8_prefix(std::string_view bytes);

// Every invalid byte becomes U+FFFD, and so does each sequence that breaks off, as a whole (Unicode
// section 3.9, maximal subparts): for JSON and terminals.
std::string to_valid_utf8(std::string_view bytes);

void append_utf8(std::string* out, uint32_t code_point);

}  // namespace topknot
