// Lines of standard input for a conversation: a wait that Ctrl-C can end, and turns of several
// lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace topknot::cli {

inline constexpr size_t kMaxLineBytes = 16 << 20;

enum class Input : uint8_t { kText, kEnd, kInterrupted, kTooLong };

class LineReader {
 public:
  explicit LineReader(int fd) : fd_(fd) {}

  // The next line without its end. The last line need not have one.
  Input read_line(std::string* line);

  // A turn: one line; or lines joined by newlines while each ends in a backslash; or all lines
  // between a line that begins with """ and one that ends with it. `prompt` and `more` are written
  // to standard error before each line, for terminals.
  Input read_turn(std::string_view prompt, std::string_view more, std::string* turn);

 private:
  Input fill();

  int fd_;
  std::string buffer_;
  bool end_ = false;
};

}  // namespace topknot::cli
