// Tables for people: lines that fit.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace topknot::cli {

inline constexpr size_t kColumns = 100;

// Words of `text` in lines of at most kColumns, those after the first behind `indent` blanks; the
// first begins at `column`.
std::string wrapped(std::string_view text, size_t column, size_t indent);

// A line behind `indent` blanks, and its further lines two columns deeper.
std::string line(size_t indent, std::string_view text);

}  // namespace topknot::cli
