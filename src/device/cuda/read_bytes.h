// Reads device memory once, with 16-byte loads in the order of the threads: what a GPU's memory
// gives at most. The sum proves that every byte was read.
//   data  u32  [words]   device memory, 16-byte aligned; words a multiple of 4
//   sum   u32  [1]       device memory; the words are added to it, modulo 2^32
// Enqueues on `stream` and returns the launch status.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace topknot::device {

struct ReadBytesArgs {
  const uint32_t* data;
  uint64_t words;
  uint32_t* sum;
  int blocks;  // some for each multiprocessor
};
cudaError_t launch_read_bytes(const ReadBytesArgs& args, cudaStream_t stream);

}  // namespace topknot::device
