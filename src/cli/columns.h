// Text in lines of at most 100 columns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace topknot::cli {

inline constexpr size_t kColumns = 100;

// Words of `text` in lines that fit behind `indent` spaces; the first begins at `column`.
std::string wrapped(std::string_view text, size_t column, size_t indent);

// A line behind `indent` spaces, and its further lines two columns deeper.
std::string line(size_t indent, std::string_view text);

}  // namespace topknot::cli
