// How fast GPUs read their memory, and copy to and from the host and each other. As cuda_facts.h:
// no CUDA header here, and in a build without GPU code the answer is kUnsupported.
#pragma once

#include <cstdint>
#include <vector>

#include "topknot/error.h"

namespace topknot::device {

// Larger than the cache of any GPU; half of what is free where that is less.
inline constexpr uint64_t kGpuReadBytes = uint64_t{1} << 30;
inline constexpr uint64_t kGpuCopyBytes = uint64_t{64} << 20;
inline constexpr int kMinGpuRounds = 5;
inline constexpr int kMaxGpuRounds = 100;

// Bytes in a second, medians.
struct CudaBandwidth {
  uint64_t read = 0;            // by a kernel
  uint64_t host_to_device = 0;  // from pinned memory
  uint64_t device_to_host = 0;
};

// Each of the three takes about `seconds`. kResource when a sum that the GPU computed is wrong, or
// for what the driver says; kUnsupported and kNotFound as probe_cuda().
Result<CudaBandwidth> measure_cuda_bandwidth(int device, double seconds);

// One direction of a pair.
struct CudaPeer {
  int from = 0;
  int to = 0;
  bool direct = false;            // `to` can be reached without host memory
  uint64_t bytes_per_second = 0;  // of a copy, by whatever way the driver takes
};

// Every ordered pair of the first `count` devices.
Result<std::vector<CudaPeer>> measure_cuda_peers(int count, double seconds);

}  // namespace topknot::device
