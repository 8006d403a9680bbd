// Text that remembers, for every byte, where it came from.
//
// trusted:   written by the template's author, or by the interpreter itself (digits of a number)
// untrusted: copied from messages, tools or any other variable
//
// Only trusted bytes may later spell a control token. Every operation on template strings is built
// from append() and slice(), so provenance cannot be lost on the way. Bytes are always valid UTF-8,
// and offsets handed to append() and slice() stand on code point boundaries.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace topknot::chat {

class Text {
 public:
  struct Run {
    size_t end;  // one past its last byte; a run begins where the one before it ends
    bool trusted;
  };

  Text() = default;
  Text(std::string_view bytes, bool trusted) { append(bytes, trusted); }

  const std::string& bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  const std::vector<Run>& runs() const { return runs_; }  // adjacent runs differ in `trusted`
  bool trusted_at(size_t offset) const;
  bool all_trusted() const { return runs_.empty() || (runs_.size() == 1 && runs_[0].trusted); }

  void append(std::string_view bytes, bool trusted);
  void append(const Text& other);
  void append(const Text& other, size_t begin, size_t end);
  Text slice(size_t begin, size_t end) const;

 private:
  size_t run_of(size_t offset) const;

  std::string bytes_;
  std::vector<Run> runs_;
};

}  // namespace topknot::chat
