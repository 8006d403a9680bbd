// First kernel of the split selection: counts the scores of each row by their leading bits.
#include "attention/indexer/cuda/radix_select.cuh"
#include "attention/indexer/cuda/split_rows.cuh"

namespace topknot::attention {
namespace {

constexpr int kThreads = 512;

__global__ void __launch_bounds__(kThreads) top_k_histogram(SplitTopKArgs args) {
  __shared__ uint32_t counts[kSplitTopKBins];
  const RowPart part = part_of_block(args);
  if (part.visible <= static_cast<uint32_t>(args.top_k.k)) return;
  for (int i = threadIdx.x; i < kSplitTopKBins; i += kThreads) counts[i] = 0;
  __syncthreads();
  const float* scores = args.top_k.scores + part.row * args.top_k.scores_stride;
  for (uint32_t at = part.begin + threadIdx.x * 4; at < part.end; at += kThreads * 4) {
    uint32_t keys[4];
    load_keys(scores, at, part.end, keys);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (at + i < part.end) atomicAdd(&counts[keys[i] >> kBinShift], 1u);
    }
  }
  __syncthreads();
  uint32_t* histogram = args.histogram + part.row * kSplitTopKBins;
  for (int i = threadIdx.x; i < kSplitTopKBins; i += kThreads) {
    if (counts[i] != 0) atomicAdd(&histogram[i], counts[i]);
  }
}

}  // namespace

cudaError_t launch_top_k_histogram(const SplitTopKArgs& args, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(args.top_k.rows * args.parts);
  top_k_histogram<<<blocks, kThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace topknot::attention
