// One block selects from one row. Rows of up to 32 K scores are held in registers: one read.
#include "attention/indexer/cuda/radix_select.cuh"
#include "attention/indexer/cuda/top_k.h"

namespace topknot::attention {
namespace {

// 32 scores a thread; 64 registers, so a block fills the registers of an SM.
constexpr int kThreads = 1024;
constexpr int kVectors = 8;
// Scores differ in few exponents: 12 leading bits, three of mantissa, spread them over enough bins
// that lanes of a warp seldom count in the same one.
constexpr int kDigitBits = 12;

__global__ void __launch_bounds__(kThreads, 1) row_top_k(TopKArgs args) {
  __shared__ SelectScratch<kThreads, kVectors, kDigitBits> scratch;
  const int64_t row = blockIdx.x;
  const int visible = args.visible[row];
  int32_t* positions = args.positions + row * args.k;
  if (visible <= args.k) {
    take_all<kThreads>(visible, args.k, positions);
    return;
  }
  const float* scores = args.scores + row * args.scores_stride;
  select_exact(
      static_cast<uint32_t>(visible), {0, 32, static_cast<uint32_t>(args.k)}, scratch,
      [&](uint32_t at, uint32_t(&keys)[4]) { load_keys(scores, at, visible, keys); },
      [&](uint32_t at, uint32_t index) { positions[at] = static_cast<int32_t>(index); });
}

}  // namespace

cudaError_t launch_row_top_k(const TopKArgs& args, cudaStream_t stream) {
  if (args.k < 1 || args.rows > INT32_MAX || args.scores_stride % 4 != 0) {
    return cudaErrorInvalidValue;
  }
  if (args.rows == 0) return cudaSuccess;
  row_top_k<<<static_cast<unsigned>(args.rows), kThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace topknot::attention
