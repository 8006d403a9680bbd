#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/strings.h"
#include "base/try.h"

namespace topknot {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Error cannot_open(const std::string& path, int error) {
  const bool absent = error == ENOENT || error == ENOTDIR;
  return Error{.code = absent ? Code::kNotFound : Code::kIo,
               .what = "cannot open the file",
               .where = printable(path, 4096),
               .why = std::strerror(error),
               .fix = absent ? "check the path" : "check that you may read the file"};
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: opening a pipe that nobody writes to must not wait; it is refused below.
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) return cannot_open(path, errno);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return cannot_open(path, errno);
  if (!S_ISREG(info.st_mode)) {
    return Error{
        .code = Code::kIo,
        .what = "not a regular file",
        .where = printable(path, 4096),
        .why = S_ISDIR(info.st_mode) ? "it is a directory" : "it is a device, pipe or socket",
        .fix = "give the path of a file"};
  }
  MappedFile file;
  file.path_ = path;
  file.size_ = static_cast<size_t>(info.st_size);
  if (file.size_ == 0) return file;
  void* data = ::mmap(nullptr, file.size_, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) {
    file.size_ = 0;
    return Error{.code = Code::kResource,
                 .what = "cannot map the file into memory",
                 .where = printable(path, 4096),
                 .why = std::strerror(errno),
                 .fix = "check `ulimit -v` and the address space left"};
  }
  file.data_ = static_cast<const std::byte*>(data);
  file.range_ = MappedRange(data, file.size_, path);
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      path_(std::move(other.path_)),
      range_(std::move(other.range_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  std::swap(range_, other.range_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

// Advice that is not taken changes no result.
void MappedFile::read_only_the_first(size_t bytes) const {
  if (data_ == nullptr) return;
  auto* data = const_cast<std::byte*>(data_);
  ::madvise(data, size_, MADV_RANDOM);
  ::madvise(data, std::min(bytes, size_), MADV_WILLNEED);
}

void MappedFile::read_ahead() const {
  if (data_ != nullptr) ::madvise(const_cast<std::byte*>(data_), size_, MADV_NORMAL);
}

Result<std::string> read_text_file(const std::string& path, uint64_t max_bytes) {
  TOPKNOT_TRY(const MappedFile file, MappedFile::open(path));
  const auto bytes = file.bytes();
  if (bytes.size() > max_bytes) {
    return Error{.code = Code::kOutOfRange,
                 .what = "the file is too long",
                 .where = printable(path, 4096),
                 .why = cat(bytes.size(), " bytes; at most ", max_bytes, " are accepted"),
                 .fix = "shorten it"};
  }
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace topknot
