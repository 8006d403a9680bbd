#include "cli/line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "cli/interrupt.h"
#include "cli/output.h"

namespace topknot::cli {
namespace {

constexpr std::string_view kBlock = "\"\"\"";

// The lines of one turn, without the marks that hold them together.
class TurnBuilder {
 public:
  bool begun() const { return begun_; }
  const std::string& text() const { return text_; }

  // True when the turn is complete.
  bool add(std::string_view line) {
    const bool opens = !begun_ && line.starts_with(kBlock);
    if (opens) {
      block_ = true;
      line.remove_prefix(kBlock.size());
    }
    const bool closes = block_ && line.ends_with(kBlock);
    if (closes) line.remove_suffix(kBlock.size());
    const bool continues = !block_ && line.ends_with('\\');
    if (continues) line.remove_suffix(1);
    // The first and the last line of a block may be nothing but its marks.
    if (!(line.empty() && (opens || closes))) {
      if (has_lines_) text_ += '\n';
      text_ += line;
      has_lines_ = true;
    }
    begun_ = true;
    return closes || (!block_ && !continues);
  }

 private:
  std::string text_;
  bool begun_ = false;
  bool block_ = false;
  bool has_lines_ = false;
};

}  // namespace

Input LineReader::fill() {
  pollfd waited[2] = {{fd_, POLLIN, 0}, {Interrupt::descriptor(), POLLIN, 0}};
  while (::poll(waited, 2, -1) < 0) {
    if (errno != EINTR) return Input::kEnd;
  }
  if (waited[1].revents != 0 && Interrupt::consume()) return Input::kInterrupted;
  if (waited[0].revents == 0) return Input::kText;  // nothing yet
  char bytes[1 << 12];
  const ssize_t count = ::read(fd_, bytes, sizeof(bytes));
  if (count < 0 && (errno == EINTR || errno == EAGAIN)) return Input::kText;
  if (count <= 0) {
    end_ = true;
    return Input::kEnd;
  }
  buffer_.append(bytes, static_cast<size_t>(count));
  return buffer_.size() > kMaxLineBytes ? Input::kTooLong : Input::kText;
}

Input LineReader::read_line(std::string* line) {
  size_t searched = 0;
  for (;;) {
    const size_t at = buffer_.find('\n', searched);
    if (at != std::string::npos) {
      line->assign(buffer_, 0, at);
      buffer_.erase(0, at + 1);
      if (!line->empty() && line->back() == '\r') line->pop_back();
      return Input::kText;
    }
    searched = buffer_.size();
    if (end_) {
      *line = std::exchange(buffer_, {});
      return line->empty() ? Input::kEnd : Input::kText;
    }
    const Input got = fill();
    if (got == Input::kInterrupted || got == Input::kTooLong) {
      buffer_.clear();
      return got;
    }
  }
}

Input LineReader::read_turn(std::string_view prompt, std::string_view more, std::string* turn) {
  TurnBuilder builder;
  for (;;) {
    write_message(builder.begun() ? more : prompt);
    std::string line;
    const Input got = read_line(&line);
    if (got == Input::kText) {
      if (!builder.add(line)) continue;
    } else if (got == Input::kInterrupted && builder.begun()) {
      builder = {};  // drops this turn only
      write_message("\n");
      continue;
    } else if (got != Input::kEnd || !builder.begun()) {
      return got;
    }
    *turn = builder.text();  // at the end of the input, too: what was typed so far
    return Input::kText;
  }
}

}  // namespace topknot::cli
