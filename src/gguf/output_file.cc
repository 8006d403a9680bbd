#include "gguf/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/strings.h"

namespace topknot::gguf {
namespace {

Error cannot_write(const std::string& path, int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return Error{.code = full ? Code::kResource : Code::kIo,
               .what = "cannot write the model",
               .where = printable(path, 4096),
               .why = std::strerror(error),
               .fix = "check the directory, its permissions and the space left"};
}

}  // namespace

Result<OutputFile> OutputFile::create(const std::string& path) {
  const std::string partial = path + ".partial";
  const int descriptor = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return cannot_write(path, errno);
  return OutputFile(path, descriptor);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      partial_(std::exchange(other.partial_, false)) {}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (partial_) ::unlink(partial_path().c_str());
}

Status OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot_write(path_, errno);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return {};
}

Status OutputFile::extend(uint64_t bytes) {
  static_assert(sizeof(off_t) == 8, "files are larger than 4 GiB");
  if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) == 0) return {};
  return cannot_write(path_, errno);
}

Status OutputFile::close() {
  const int descriptor = std::exchange(descriptor_, -1);
  if (descriptor < 0 || ::close(descriptor) == 0) return {};
  return cannot_write(path_, errno);
}

Status OutputFile::commit() {
  if (Status closed = close(); !closed) return closed;
  if (std::rename(partial_path().c_str(), path_.c_str()) != 0) return cannot_write(path_, errno);
  partial_ = false;
  return {};
}

}  // namespace topknot::gguf
