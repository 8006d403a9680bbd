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

// Refuses the empty text, and text that is not UTF-8 naming the byte. `name`: "the prompt";
// `where`: the file it came from, or empty.
Status check_text(std::string_view text, std::string_view name, std::string_view where);

}  // namespace topknot::cli
