// A small file that appears whole or not at all: written under "<path>.partial", then renamed. Made
// before the work whose result it takes, so that a path that cannot be written is told at once.
#pragma once

#include <string>
#include <string_view>

#include "topknot/error.h"

namespace topknot {

enum class Overwrite : bool { kNo, kYes };

// Move-only. Destroyed before commit(), it leaves nothing behind.
class NewFile {
 public:
  // kIo when it cannot be written; kInvalidArgument when a file is there and may not be
  // overwritten.
  static Result<NewFile> create(const std::string& path, Overwrite overwrite);
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&& other) noexcept;
  ~NewFile();

  // Writes the text and gives the file its name. A file that came there meanwhile is left alone
  // unless it may be overwritten.
  Status commit(std::string_view text);

 private:
  NewFile(std::string path, Overwrite overwrite, int descriptor)
      : path_(std::move(path)), overwrite_(overwrite), descriptor_(descriptor) {}
  std::string partial_path() const { return path_ + ".partial"; }

  std::string path_;
  Overwrite overwrite_;
  int descriptor_ = -1;  // -1: committed or moved from
};

}  // namespace topknot
