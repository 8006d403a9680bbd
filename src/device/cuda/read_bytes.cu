#include "device/cuda/read_bytes.h"

namespace topknot::device {
namespace {

constexpr int kThreads = 512;
constexpr int kUnroll = 8;  // loads under way in a thread: 128 bytes; 4 read 3 % less on an H200

__device__ uint32_t total(uint4 v) { return v.x + v.y + v.z + v.w; }

__global__ void __launch_bounds__(kThreads) read_bytes(ReadBytesArgs args) {
  const auto* data = reinterpret_cast<const uint4*>(args.data);
  const uint64_t count = args.words / 4;
  const uint64_t step = uint64_t{gridDim.x} * kThreads;
  uint32_t sum = 0;
  uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (; i + (kUnroll - 1) * step < count; i += kUnroll * step) {
    uint4 loaded[kUnroll];
#pragma unroll
    for (int j = 0; j < kUnroll; ++j) loaded[j] = __ldcs(data + i + j * step);
#pragma unroll
    for (int j = 0; j < kUnroll; ++j) sum += total(loaded[j]);
  }
  for (; i < count; i += step) sum += total(data[i]);
  for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
  if (threadIdx.x % 32 == 0) atomicAdd(args.sum, sum);
}

}  // namespace

cudaError_t launch_read_bytes(const ReadBytesArgs& args, cudaStream_t stream) {
  read_bytes<<<args.blocks, kThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace topknot::device
