// Reading the kernel's text files below /proc and /sys. They claim a size of 0, so they cannot be
// mapped; and what they hold is a fact or it is missing: no caller can do anything about a failure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace topknot::device {

// More than any file read here holds (/proc/cpuinfo of 512 processors is under 1 MiB).
inline constexpr size_t kMaxSmallFileBytes = 4 << 20;

// The text without its last newline, cut at kMaxSmallFileBytes; none when it cannot be read.
std::optional<std::string> read_small_file(const std::string& path);

// The whole of `text` as a decimal number; none for anything else ("max", "", "12 kB").
std::optional<uint64_t> parse_number(std::string_view text);

// The number after `key` at the start of a line: number_after("MemTotal:   12 kB", "MemTotal:")
// is 12. Also for "inactive_file 4096": the key is then "inactive_file".
std::optional<uint64_t> number_after(std::string_view text, std::string_view key);

// The text after `key`, ':' and blanks at the start of a line: "model name\t: X" gives "X".
std::optional<std::string> text_after(std::string_view text, std::string_view key);

}  // namespace topknot::device
