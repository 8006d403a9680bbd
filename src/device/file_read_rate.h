// How fast a file is read from its disk: several threads take pieces in turn, past the page cache
// where the file system allows it. Where it does not, the file's pages are dropped first, and what
// stayed in the cache is told: such a rate is that of memory.
#pragma once

#include <cstdint>
#include <string>

#include "topknot/error.h"

namespace topknot::device {

inline constexpr int kFileReadThreads = 4;  // as many requests as disks like to have at once
inline constexpr uint64_t kFileReadPieceBytes = 8 << 20;
// A rate of fewer bytes, or with more of them in the page cache, says little about a disk.
inline constexpr uint64_t kMinFileRateBytes = uint64_t{256} << 20;
inline constexpr double kMaxCachedShare = 0.05;

struct FileReadLimits {
  uint64_t bytes = uint64_t{4} << 30;
  double seconds = 3;
};

struct FileReadRate {
  uint64_t bytes = 0;  // read
  double seconds = 0;
  bool direct = false;      // past the page cache
  double cached_share = 0;  // of what is read, in the page cache when reading began; 0 if direct
  bool cached() const { return cached_share > kMaxCachedShare; }
  bool tells_the_disk() const { return !cached() && bytes >= kMinFileRateBytes; }
  uint64_t bytes_per_second() const {
    return seconds > 0 ? static_cast<uint64_t>(static_cast<double>(bytes) / seconds) : 0;
  }
};

// From the file's beginning. kNotFound and kIo as MappedFile::open(); kCorrupt: the file is empty.
Result<FileReadRate> measure_file_read(const std::string& path, const FileReadLimits& limits);

}  // namespace topknot::device
