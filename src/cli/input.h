// Texts that users hand over: on the command line, in files, through pipes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "topknot/error.h"

namespace topknot::cli {

inline constexpr uint64_t kMaxTextFileBytes = 64 << 20;

// A file, a pipe or device, or standard input ("-").
Result<std::string> read_text(const std::string& path);

// The text of a prompt file without what editors add: a byte order mark before it, and one newline
// (\n or \r\n) behind it.
std::string_view prompt_of_file(std::string_view text);

// Refuses the empty text, and text that is not UTF-8 naming the byte. `name`: "the prompt";
// `where`: the file it came from, or empty.
Status check_text(std::string_view text, std::string_view name, std::string_view where);

}  // namespace topknot::cli
