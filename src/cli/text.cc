#include "cli/text.h"

#include <algorithm>

namespace topknot::cli {

std::string wrapped(std::string_view text, size_t column, size_t indent) {
  std::string out;
  size_t at = column;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    const bool first = at == column || at == indent;
    if (!first && at + 1 + word.size() > kColumns) {
      out += '\n' + std::string(indent, ' ');
      at = indent;
    } else if (!first) {
      out += ' ';
      ++at;
    }
    out += word;
    at += word.size();
    begin = end + 1;
  }
  return out;
}

}  // namespace topknot::cli
