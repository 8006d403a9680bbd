#include "base/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/strings.h"

namespace topknot {
namespace {

Error cannot_write(const std::string& path, int error) {
  const bool full = error == ENOSPC || error == EDQUOT;
  return Error{.code = full ? Code::kResource : Code::kIo,
               .what = "cannot write the file",
               .where = printable(path, 4096),
               .why = std::strerror(error),
               .fix = "check the folder, its permissions and the space left"};
}

Error is_there(const std::string& path) {
  return Error{.code = Code::kInvalidArgument,
               .what = "the file is there already",
               .where = printable(path, 4096),
               .why = "it is not overwritten unless asked for",
               .fix = "give another name, or --force"};
}

bool exists(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

}  // namespace

Result<NewFile> NewFile::create(const std::string& path, Overwrite overwrite) {
  if (overwrite == Overwrite::kNo && exists(path)) return is_there(path);
  const std::string partial = path + ".partial";
  const int descriptor = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return cannot_write(path, errno);
  return NewFile(path, overwrite, descriptor);
}

NewFile::NewFile(NewFile&& other) noexcept
    : path_(std::move(other.path_)),
      overwrite_(other.overwrite_),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

NewFile& NewFile::operator=(NewFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(overwrite_, other.overwrite_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

NewFile::~NewFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(partial_path().c_str());
}

Status NewFile::commit(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor_, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot_write(path_, errno);
    text.remove_prefix(static_cast<size_t>(count));
  }
  // A link, unlike a rename, fails where a file is. File systems without links get the rename.
  if (overwrite_ == Overwrite::kNo) {
    if (::link(partial_path().c_str(), path_.c_str()) == 0) return {};  // the destructor unlinks
    if (errno == EEXIST || exists(path_)) return is_there(path_);
  }
  if (::rename(partial_path().c_str(), path_.c_str()) != 0) return cannot_write(path_, errno);
  const int closed = ::close(std::exchange(descriptor_, -1));
  return closed == 0 ? Status() : Status(cannot_write(path_, errno));
}

}  // namespace topknot
