#include "device/cpu/small_file.h"

#include <charconv>
#include <fstream>

namespace topknot::device {
namespace {

// Rest of the first line that starts with `key` followed by a blank, a tab or ':'.
std::optional<std::string_view> rest_of_line(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (line.starts_with(key)) {
      const std::string_view rest = line.substr(key.size());
      const size_t begin = rest.find_first_not_of(" \t:");
      if (begin > 0 || key.ends_with(':')) {
        return begin == std::string_view::npos ? std::string_view{} : rest.substr(begin);
      }
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> read_small_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::string text;
  char chunk[4096];
  while (text.size() < kMaxSmallFileBytes) {
    in.read(chunk, sizeof chunk);
    text.append(chunk, static_cast<size_t>(in.gcount()));
    if (!in) break;
  }
  if (in.bad()) return std::nullopt;
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<uint64_t> number_after(std::string_view text, std::string_view key) {
  const auto rest = rest_of_line(text, key);
  if (!rest) return std::nullopt;
  return parse_number(rest->substr(0, rest->find_first_of(" \t")));
}

std::optional<std::string> text_after(std::string_view text, std::string_view key) {
  const auto rest = rest_of_line(text, key);
  if (!rest) return std::nullopt;
  return std::string(*rest);
}

}  // namespace topknot::device
