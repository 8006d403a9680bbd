// A whole file mapped read-only. Move-only; unmapped on destruction. Whoever shortens the file
// meanwhile turns reads into SIGBUS: see mapped_range.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/mapped_range.h"
#include "topknot/error.h"

namespace topknot {

class MappedFile {
 public:
  // kNotFound, or kIo for a directory, a device or a file that cannot be read. An empty file maps
  // to an empty span.
  static Result<MappedFile> open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  // Reads the first `bytes` at once, and from then on only the pages that are touched: for looking
  // at the beginning of a large file, of which the kernel would read megabytes ahead.
  void read_only_the_first(size_t bytes) const;
  // Ends that.
  void read_ahead() const;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
  std::string path_;
  MappedRange range_;
};

// Reads a text file of at most `max_bytes`; kOutOfRange above that.
Result<std::string> read_text_file(const std::string& path, uint64_t max_bytes);

}  // namespace topknot
