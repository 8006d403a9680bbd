#include "base/strings.h"

#include <algorithm>
#include <array>

namespace topknot {
namespace {

// Length of the valid sequence at the front of `s`; 0 if it is invalid; -1 if it is a valid
// beginning that ends too early.
int utf8_sequence(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(s[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  int length = 0;
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;   // overlong
    if (lead == 0xED) high = 0x9F;  // surrogates
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;  // above U+10FFFF
  } else {
    return 0;
  }
  for (int i = 1; i < length; ++i) {
    if (static_cast<size_t>(i) >= s.size()) return -1;
    if (byte(i) < low || byte(i) > high) return 0;
    low = 0x80;
    high = 0xBF;
  }
  return length;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      const size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({change, above + 1, row[j - 1] + 1});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace

std::string printable(std::string_view bytes, size_t max_bytes) {
  std::string out;
  size_t i = 0;
  while (i < bytes.size() && i < max_bytes) {
    const int length = utf8_sequence(bytes.substr(i));
    const auto lead = static_cast<uint8_t>(bytes[i]);
    if (length <= 0 || lead < 0x20 || lead == 0x7F) {
      out += fmt::format("\\x{:02x}", lead);
      ++i;
    } else {
      out += bytes.substr(i, static_cast<size_t>(length));
      i += static_cast<size_t>(length);
    }
  }
  if (i < bytes.size()) out += "...";
  return out;
}

std::string human_bytes(uint64_t bytes) {
  constexpr std::array<const char*, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return cat(bytes, " B");
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::vector<std::string> nearest(std::string_view name, std::span<const std::string> candidates,
                                 size_t limit) {
  constexpr size_t kMaxNameBytes = 256;  // the distance costs a product of lengths
  name = name.substr(0, kMaxNameBytes);
  std::vector<std::pair<size_t, const std::string*>> scored;
  for (const std::string& candidate : candidates) {
    const size_t distance =
        edit_distance(name, std::string_view(candidate).substr(0, kMaxNameBytes));
    if (distance <= std::max<size_t>(2, name.size() / 3)) scored.emplace_back(distance, &candidate);
  }
  std::stable_sort(scored.begin(), scored.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> out;
  for (const auto& [distance, candidate] : scored) {
    if (out.size() == limit) break;
    out.push_back(*candidate);
  }
  return out;
}

size_t find_invalid_utf8(std::string_view bytes) {
  size_t i = 0;
  while (i < bytes.size()) {
    const int length = utf8_sequence(bytes.substr(i));
    if (length <= 0) return i;
    i += static_cast<size_t>(length);
  }
  return std::string_view::npos;
}

size_t complete_utf8_prefix(std::string_view bytes) {
  // Only the last three bytes can belong to a sequence that is not finished.
  const size_t from = bytes.size() < 3 ? 0 : bytes.size() - 3;
  for (size_t i = from; i < bytes.size(); ++i) {
    if (utf8_sequence(bytes.substr(i)) == -1) return i;
  }
  return bytes.size();
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  size_t i = 0;
  while (i < bytes.size()) {
    const int length = utf8_sequence(bytes.substr(i));
    if (length <= 0) {
      out += "\xEF\xBF\xBD";
      size_t broken = 1;  // the invalid byte, or a sequence up to where it breaks off
      while (i + broken < bytes.size() && utf8_sequence(bytes.substr(i, broken + 1)) == -1)
        ++broken;
      i += broken;
    } else {
      out += bytes.substr(i, static_cast<size_t>(length));
      i += static_cast<size_t>(length);
    }
  }
  return out;
}

void append_utf8(std::string* out, uint32_t c) {
  if (c < 0x80) {
    *out += static_cast<char>(c);
  } else if (c < 0x800) {
    *out += static_cast<char>(0xC0 | (c >> 6));
    *out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    *out += static_cast<char>(0xE0 | (c >> 12));
    *out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    *out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    *out += static_cast<char>(0xF0 | (c >> 18));
    *out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    *out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    *out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

}  // namespace topknot
