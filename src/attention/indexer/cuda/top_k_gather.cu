// Second kernel of the split selection: every block lists the scores of its part that may be among
// the k largest, and the last block of a row to arrive selects from the lists.
#include <cstddef>

#include "attention/indexer/cuda/radix_select.cuh"
#include "attention/indexer/cuda/split_rows.cuh"

namespace topknot::attention {
namespace {

// A single row waits for latency, that of fetching instructions too: chunks are small, and loops
// that need not be unrolled are not.
constexpr int kThreads = 512;
constexpr int kPartVectors = 2;  // a chunk of a part holds 4096 scores
constexpr int kListVectors = 4;  // the list of a row is one chunk
constexpr int kDigitBits = 11;   // few elements: few bins to clear and to search
static_assert(kThreads * kListVectors * 4 == kSplitTopKListed);
static_assert(kMaxSplitTopKParts <= kThreads);

struct Shared {
  SelectScratch<kThreads, kListVectors, kDigitBits> select;
  BlockScratch<kThreads> block;
  bool last;                                    // this block arrived last
  bool overflow;                                // a part had no room for its candidates
  uint32_t part_begin[kMaxSplitTopKParts + 1];  // of each part's candidates among the row's
  // The row's candidates in the order of the row.
  alignas(16) uint32_t keys[kSplitTopKListed];
  int32_t index[kSplitTopKListed];
};

using RowBins = ThreadBins<kThreads, kSplitTopKBins>;

__device__ RowBins load_bins(const SplitTopKArgs& args, int64_t row) {
  RowBins bins;
  const uint32_t* histogram = args.histogram + row * kSplitTopKBins + RowBins::lowest();
#pragma unroll
  for (int i = 0; i < RowBins::kCount; i += 4) {
    bins.set_quad(i, __ldcg(reinterpret_cast<const uint4*>(histogram + i)));
  }
  return bins;
}

__device__ void load_part_chunk(const float* scores, uint32_t first, uint32_t end,
                                uint32_t (&keys)[kPartVectors][4]) {
#pragma unroll
  for (int v = 0; v < kPartVectors; ++v) {
    load_keys(scores, first + (v * kThreads + threadIdx.x) * 4, end, keys[v]);
  }
}

// Lists what lies in the bin of the k-th largest or above, in order; returns that bin. Bin 0 holds
// NaN only, and with it everything passes: nothing is listed.
__device__ Bin list_part(const SplitTopKArgs& args, const RowPart& part, Shared& shared) {
  constexpr uint32_t kChunk = kThreads * kPartVectors * 4;
  const float* scores = args.top_k.scores + part.row * args.top_k.scores_stride;
  const RowBins bins = load_bins(args, part.row);
  uint32_t next[kPartVectors][4];
  load_part_chunk(scores, part.begin, part.end, next);  // on its way while the bin is found
  const Bin bin = find_bin(bins, static_cast<uint32_t>(args.top_k.k), shared.block);
  if (bin.index == 0) return bin;
  const int64_t list = part.row * args.parts + part.part;
  TopKCandidate* candidates = args.candidates + list * kSplitTopKPartListed;
  Progress progress;
#pragma unroll 1
  for (uint32_t first = part.begin; first < part.end; first += kChunk) {
    uint32_t keys[kPartVectors][4];
#pragma unroll
    for (int i = 0; i < kPartVectors * 4; ++i) keys[i / 4][i % 4] = next[i / 4][i % 4];
    if (first + kChunk < part.end) load_part_chunk(scores, first + kChunk, part.end, next);
    write_taken<kThreads, kPartVectors>(
        keys, {(bin.index << kBinShift) - 1, 0}, shared.select.totals, progress,
        [&](uint32_t at, uint32_t i) {
          if (at >= kSplitTopKPartListed) return;
          candidates[at] = {order_key(scores[first + i]), static_cast<int32_t>(first + i)};
        });
  }
  if (threadIdx.x == 0) args.listed[list] = progress.above;
  return bin;
}

// True in the block of the row that arrives last: it sees what all others wrote.
__device__ bool arrive(uint32_t* arrived, int parts, Shared& shared) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    shared.last = atomicAdd(arrived, 1u) == static_cast<uint32_t>(parts - 1);
    shared.overflow = false;
    __threadfence();
  }
  __syncthreads();
  return shared.last;
}

// Copies the parts' candidates to shared memory, one behind the other; returns how many there are,
// or none where a list overflows.
__device__ uint32_t collect_parts(const SplitTopKArgs& args, int64_t row, Shared& shared) {
  const int64_t first_list = row * args.parts;
  uint32_t count = 0;
  if (threadIdx.x < args.parts) {
    count = __ldcg(&args.listed[first_list + threadIdx.x]);
    if (count > kSplitTopKPartListed) shared.overflow = true;
  }
  uint32_t total;
  const uint32_t begin = scan_block(count, shared.block, &total);
  if (threadIdx.x < args.parts) shared.part_begin[threadIdx.x] = begin;
  if (threadIdx.x == 0) shared.part_begin[args.parts] = total;
  __syncthreads();
  if (shared.overflow || total > kSplitTopKListed) return 0;
  for (int part = threadIdx.x / 32; part < args.parts; part += kThreads / 32) {
    const uint32_t first = shared.part_begin[part];
    const uint32_t length = shared.part_begin[part + 1] - first;
    const auto* list = reinterpret_cast<const uint2*>(args.candidates +
                                                      (first_list + part) * kSplitTopKPartListed);
    for (uint32_t i = threadIdx.x % 32; i < length; i += 32) {
      const uint2 candidate = __ldcg(list + i);
      shared.keys[first + i] = candidate.x;
      shared.index[first + i] = static_cast<int32_t>(candidate.y);
    }
  }
  // Keys are read four at a time; behind the last they are 0.
  if (threadIdx.x < 3 && total + threadIdx.x < kSplitTopKListed) {
    shared.keys[total + threadIdx.x] = 0;
  }
  __syncthreads();
  return total;
}

// All blocks of the row have read the histogram and arrived: ready for the next launch.
__device__ void reset_row(const SplitTopKArgs& args, int64_t row) {
  auto* quads = reinterpret_cast<uint4*>(args.histogram + row * kSplitTopKBins);
  for (int i = threadIdx.x; i < kSplitTopKBins / 4; i += kThreads) {
    quads[i] = make_uint4(0, 0, 0, 0);
  }
  if (threadIdx.x == 0) args.arrived[row] = 0;
}

// Without a list. Apart from the kernel, whose code is then shorter.
__device__ __noinline__ void select_from_row(const TopKArgs& args, int64_t row, uint32_t visible,
                                             Shared& shared) {
  const float* scores = args.scores + row * args.scores_stride;
  int32_t* positions = args.positions + row * args.k;
  select_in_chunks<kThreads, kPartVectors, false>(
      visible, {0, 32, static_cast<uint32_t>(args.k)}, shared.select,
      [&](uint32_t at, uint32_t(&keys)[4]) { load_keys(scores, at, visible, keys); },
      [&](uint32_t at, uint32_t i) { positions[at] = static_cast<int32_t>(i); });
}

__global__ void __launch_bounds__(kThreads, 1) top_k_gather(SplitTopKArgs args) {
  extern __shared__ __align__(16) std::byte memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  const RowPart part = part_of_block(args);
  const int k = args.top_k.k;
  int32_t* positions = args.top_k.positions + part.row * k;
  if (part.visible <= static_cast<uint32_t>(k)) {
    if (part.part == 0) take_all<kThreads>(static_cast<int>(part.visible), k, positions);
    return;
  }
  const Bin bin = list_part(args, part, shared);
  if (!arrive(args.arrived + part.row, args.parts, shared)) return;
  const uint32_t listed = bin.index == 0 ? 0 : collect_parts(args, part.row, shared);
  reset_row(args, part.row);
  if (listed == 0) {
    select_from_row(args.top_k, part.row, part.visible, shared);
    return;
  }
  select_in_chunks<kThreads, kListVectors, true>(
      listed, {bin.index << kBinShift, kBinShift, bin.wanted}, shared.select,
      [&](uint32_t at, uint32_t(&keys)[4]) {
        const uint4 quad = *reinterpret_cast<const uint4*>(shared.keys + at);
        keys[0] = quad.x, keys[1] = quad.y, keys[2] = quad.z, keys[3] = quad.w;
      },
      [&](uint32_t at, uint32_t i) { positions[at] = shared.index[i]; });
}

}  // namespace

cudaError_t launch_top_k_gather(const SplitTopKArgs& args, cudaStream_t stream) {
  static_assert(sizeof(Shared) <= kTopKSharedBytes);
  const cudaError_t error = cudaFuncSetAttribute(
      top_k_gather, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
  if (error != cudaSuccess) return error;
  const auto blocks = static_cast<unsigned>(args.top_k.rows * args.parts);
  top_k_gather<<<blocks, kThreads, sizeof(Shared), stream>>>(args);
  return cudaGetLastError();
}

}  // namespace topknot::attention
