// One block maps one row.
#include <cstdint>

#include "kvcache/cuda/cuda_slot_map.h"

namespace topknot::kvcache {
namespace {

constexpr int kThreads = 512;  // four positions of a row of 2048 each

__global__ void __launch_bounds__(kThreads) slot_map(CudaSlotMapArgs args) {
  const int64_t token = blockIdx.x;
  const int32_t* pages = args.block_table + args.requests[token] * args.max_pages;
  const int32_t* positions = args.positions + token * args.width;
  int32_t* slots = args.slots + token * args.width;
  int valid = 0, outside = 0;
  for (int64_t i = threadIdx.x; i < args.width; i += kThreads) {
    const int32_t position = positions[i];
    int32_t slot = -1;
    if (position >= 0) {
      const int32_t page_index = position / args.page_tokens;
      const int32_t page = page_index < args.max_pages ? pages[page_index] : -1;
      const int64_t found = int64_t{page} * args.page_tokens + position % args.page_tokens;
      const bool is_slot = page >= 0 && found <= INT32_MAX;
      if (is_slot) slot = static_cast<int32_t>(found);
      (is_slot ? valid : outside) += 1;
    }
    slots[i] = slot;
  }
  if (outside > 0 && args.out_of_range != nullptr) {
    atomicAdd(args.out_of_range, static_cast<unsigned long long>(outside));
  }
  if (args.valid == nullptr) return;
  __shared__ int warp_valid[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) valid += __shfl_xor_sync(0xFFFF'FFFFu, valid, step);
  if (threadIdx.x % 32 == 0) warp_valid[threadIdx.x / 32] = valid;
  __syncthreads();
  if (threadIdx.x == 0) {
    int sum = 0;
    for (const int of_warp : warp_valid) sum += of_warp;
    args.valid[token] = sum;
  }
}

}  // namespace

cudaError_t launch_slot_map(const CudaSlotMapArgs& args, cudaStream_t stream) {
  if (args.page_tokens < 1 || args.tokens > INT32_MAX) return cudaErrorInvalidValue;
  if (args.tokens == 0) return cudaSuccess;
  slot_map<<<static_cast<unsigned>(args.tokens), kThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace topknot::kvcache
