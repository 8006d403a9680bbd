// A file that is written under "<path>.partial" and gets its own name only when it is whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "topknot/error.h"

namespace topknot::gguf {

// Move-only. Destroyed before commit(), it leaves nothing behind.
class OutputFile {
 public:
  // kIo. What an earlier, killed run left under the partial name is overwritten.
  static Result<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  // Appends. kResource when the disk is full.
  Status write(std::span<const std::byte> bytes);
  // Ends the file at `bytes` without writing: what is not written reads as zeros and takes no disk
  // space where the file system knows holes.
  Status extend(uint64_t bytes);
  // No more is written; the file keeps its partial name.
  Status close();
  // Closes it if it is open, and gives it its name, over one that is there already.
  Status commit();
  const std::string& path() const { return path_; }

 private:
  OutputFile(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor), partial_(true) {}
  std::string partial_path() const { return path_ + ".partial"; }

  std::string path_;
  int descriptor_ = -1;
  bool partial_ = false;  // a file of the partial name is there
};

}  // namespace topknot::gguf
