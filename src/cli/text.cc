#include "cli/text.h"

#include <algorithm>

namespace topknot::cli {

std::string wrapped(std::string_view text, size_t column, size_t indent) {
  std::string out;
  size_t at = column;
  size_t begin = 0;
  bool first = true;  // of its line
  while (begin < text.size()) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    if (!first && at + 1 + word.size() > kColumns) {
      out += '\n' + std::string(indent, ' ');
      at = indent;
    } else if (!first) {
      out += ' ';
      ++at;
    }
    out += word;
    at += word.size();
    first = false;
    begin = end + 1;
  }
  return out;
}

std::string line(size_t indent, std::string_view text) {
  return std::string(indent, ' ') + wrapped(text, indent, indent + 2) + '\n';
}

}  // namespace topknot::cli
