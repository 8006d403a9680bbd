// Which addresses are files: a mapped file that is shortened, or whose disk fails, answers reads
// with SIGBUS, and the process ends without a word unless somebody says which file it was.
#pragma once

#include <cstddef>
#include <string>

namespace topknot {

inline constexpr size_t kMaxMappedRanges = 4096;  // known at once; more are mapped, but not told

// Announces a range for the life of the object. Move-only. The memory stays the caller's.
class MappedRange {
 public:
  MappedRange() = default;
  MappedRange(const void* begin, size_t bytes, const std::string& path);
  MappedRange(MappedRange&& other) noexcept;
  MappedRange& operator=(MappedRange&& other) noexcept;
  ~MappedRange();

 private:
  int slot_ = -1;  // of the process's table; none
};

// From now on a read of a lost part of such a range prints an error to standard error and ends the
// process with `exit_code`; any other SIGBUS does what it did. For programs: a library leaves
// signals to the program that it is part of.
void report_lost_files(int exit_code);

}  // namespace topknot
