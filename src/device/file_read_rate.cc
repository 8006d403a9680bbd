#include "device/file_read_rate.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "base/mapped_file.h"
#include "base/strings.h"
#include "base/thread_pool.h"
#include "base/try.h"

namespace topknot::device {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kDirectAlignment = 4096;  // of memory and offsets; enough for every disk sold

struct Free {
  void operator()(void* data) const { std::free(data); }
};
using AlignedBuffer = std::unique_ptr<void, Free>;

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

Error cannot_read(const std::string& path, int error) {
  return Error{.code = Code::kIo,
               .what = "cannot measure how fast the file is read",
               .where = printable(path, 4096),
               .why = std::strerror(error),
               .fix = "check that you may read the file, and the system log for disk errors"};
}

// Whether reads past the page cache work here; some file systems take the flag and refuse the read.
bool reads_directly(int fd, void* buffer) {
  return fd >= 0 && ::pread(fd, buffer, kDirectAlignment, 0) > 0;
}

double share_in_cache(const MappedFile& file, uint64_t bytes) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> pages((bytes + page - 1) / page);
  auto* data = const_cast<std::byte*>(file.bytes().data());
  if (pages.empty() || ::mincore(data, bytes, pages.data()) != 0) return 0;
  const auto present = std::count_if(pages.begin(), pages.end(), [](auto p) { return p & 1; });
  return static_cast<double>(present) / static_cast<double>(pages.size());
}

// Reads pieces until the bytes or the time are used up; the first error of a thread, or 0.
int read_pieces(int fd, const FileReadLimits& limits, uint64_t bytes,
                const std::vector<AlignedBuffer>& buffers, FileReadRate* rate) {
  std::atomic<uint64_t> next{0};
  std::atomic<uint64_t> done{0};
  std::atomic<int> error{0};
  ThreadPool pool(static_cast<int>(buffers.size()));
  const auto begin = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  pool.parallel_for(static_cast<int64_t>(buffers.size()), [&](int64_t item, int) {
    while (error == 0 && seconds() < limits.seconds) {
      const uint64_t at = next.fetch_add(kFileReadPieceBytes);
      if (at >= bytes) return;
      const auto wanted = static_cast<size_t>(std::min(kFileReadPieceBytes, bytes - at));
      // Direct reads take whole blocks only: the last piece is asked for whole and comes short.
      const size_t whole = (wanted + kDirectAlignment - 1) / kDirectAlignment * kDirectAlignment;
      const ssize_t got =
          ::pread(fd, buffers[static_cast<size_t>(item)].get(), whole, static_cast<off_t>(at));
      if (got < 0 && errno != EINTR) error = errno;
      if (got > 0) done.fetch_add(static_cast<uint64_t>(got));
    }
  });
  rate->seconds = seconds();
  rate->bytes = done;
  return error;
}

}  // namespace

Result<FileReadRate> measure_file_read(const std::string& path, const FileReadLimits& limits) {
  TOPKNOT_TRY(const MappedFile file, MappedFile::open(path));
  const uint64_t bytes = std::min<uint64_t>(file.bytes().size(), limits.bytes);
  if (bytes == 0) {
    return Error{.code = Code::kCorrupt,
                 .what = "cannot measure how fast the file is read",
                 .where = printable(path, 4096),
                 .why = "the file is empty",
                 .fix = "give a file of some GB, for instance a model"};
  }
  std::vector<AlignedBuffer> buffers;
  for (int i = 0; i < kFileReadThreads; ++i) {
    buffers.emplace_back(std::aligned_alloc(kDirectAlignment, kFileReadPieceBytes));
    if (buffers.back() == nullptr) return cannot_read(path, ENOMEM);
  }
  FileReadRate rate;
  const Descriptor direct(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT));
  rate.direct = reads_directly(direct.get(), buffers.front().get());
  const Descriptor through_cache(rate.direct ? -1 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!rate.direct) {
    if (through_cache.get() < 0) return cannot_read(path, errno);
    ::posix_fadvise(through_cache.get(), 0, 0, POSIX_FADV_DONTNEED);
    rate.cached_share = share_in_cache(file, bytes);
  }
  const int fd = rate.direct ? direct.get() : through_cache.get();
  if (const int error = read_pieces(fd, limits, bytes, buffers, &rate); error != 0) {
    return cannot_read(path, error);
  }
  return rate;
}

}  // namespace topknot::device
