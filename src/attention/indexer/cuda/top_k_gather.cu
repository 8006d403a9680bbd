// Second kernel of the split selection: every block lists the scores of its part that may be among
// the k largest, and the last block of a row to arrive selects from the list.
#include "attention/indexer/cuda/radix_select.cuh"
#include "attention/indexer/cuda/split_rows.cuh"

namespace topknot::attention {
namespace {

constexpr int kThreads = 512;
constexpr int kVectors = 4;  // a chunk holds the whole list, 16 of it a thread
static_assert(kThreads * kVectors * 4 == kSplitTopKListed);
static_assert(kMaxSplitTopKParts <= kThreads);

struct Shared {
  union {
    uint32_t bins[kSplitTopKBins];
    SelectScratch<kThreads, kVectors> select;
  };
  BlockScratch<kThreads> block;
  ChunkTotals<kThreads, kVectors> totals;
  uint32_t first;  // of this part in the list
  bool last;       // this block arrived last
  // Of the row's parts, in the order of the row: where each begins in it, and in the list.
  uint32_t part_begin[kMaxSplitTopKParts + 1];
  uint32_t part_first[kMaxSplitTopKParts];
};

__device__ Bin find_row_bin(const SplitTopKArgs& args, int64_t row, Shared& shared) {
  const uint32_t* histogram = args.histogram + row * kSplitTopKBins;
  for (int i = threadIdx.x; i < kSplitTopKBins; i += kThreads) {
    shared.bins[i] = __ldcg(histogram + i);
  }
  __syncthreads();
  return find_bin<kThreads, kSplitTopKBins>(shared.bins, static_cast<uint32_t>(args.top_k.k),
                                            shared.block);
}

__device__ void load_part_chunk(const float* scores, uint32_t first, uint32_t end,
                                uint32_t (&keys)[kVectors][4]) {
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    load_keys(scores, first + (v * kThreads + threadIdx.x) * 4, end, keys[v]);
  }
}

// Lists what lies in `bin` or above, in order. A list without room is only counted.
__device__ void list_part(const SplitTopKArgs& args, const RowPart& part, uint32_t bin,
                          Shared& shared) {
  constexpr uint32_t kChunk = kSplitTopKListed;
  const float* scores = args.top_k.scores + part.row * args.top_k.scores_stride;
  const uint32_t bound = bin << kBinShift;
  uint32_t keys[kVectors][4];
  uint32_t passed = 0;
  for (uint32_t first = part.begin; first < part.end; first += kChunk) {
    load_part_chunk(scores, first, part.end, keys);
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
#pragma unroll
      for (int i = 0; i < 4; ++i) passed += keys[v][i] >= bound;
    }
  }
  uint32_t total;
  scan_block(passed, shared.block, &total);
  if (threadIdx.x == 0) {
    shared.first = atomicAdd(&args.counters[part.row].listed, total);
    args.part_table[part.row * kMaxSplitTopKParts + part.part] = {shared.first, total};
  }
  __syncthreads();
  if (uint64_t{shared.first} + total > kSplitTopKListed) return;
  TopKCandidate* list = args.candidates + part.row * kSplitTopKListed + shared.first;
  const bool resident = part.end - part.begin <= kChunk;
  Progress progress;
  for (uint32_t first = part.begin; first < part.end; first += kChunk) {
    if (!resident) load_part_chunk(scores, first, part.end, keys);
    write_taken<kThreads, kVectors>(
        keys, {bound - 1, 0}, shared.totals, progress, [&](uint32_t at, int i) {
          list[at] = {order_key(scores[first + i]), static_cast<int32_t>(first + i)};
        });
  }
}

// True in the block of the row that arrives last: it sees what all others wrote.
__device__ bool arrive(TopKCounters& counters, int parts, Shared& shared) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    shared.last = atomicAdd(&counters.arrived, 1u) == static_cast<uint32_t>(parts - 1);
    __threadfence();
  }
  __syncthreads();
  return shared.last;
}

// Where element `at` of the ordered list is in memory.
__device__ uint32_t listed_at(const Shared& shared, int parts, uint32_t at) {
  int low = 0, high = parts;  // part_begin[low] <= at < part_begin[high]
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (shared.part_begin[middle] <= at ? low : high) = middle;
  }
  return shared.part_first[low] + at - shared.part_begin[low];
}

__device__ void select_from_list(const SplitTopKArgs& args, int64_t row, uint32_t listed, Bin bin,
                                 Shared& shared) {
  const TopKPart* table = args.part_table + row * kMaxSplitTopKParts;
  TopKPart part = {0, 0};
  if (threadIdx.x < args.parts) {
    part.first = __ldcg(&table[threadIdx.x].first);
    part.count = __ldcg(&table[threadIdx.x].count);
  }
  uint32_t total;
  const uint32_t begin = scan_block(part.count, shared.block, &total);
  if (threadIdx.x < args.parts) {
    shared.part_begin[threadIdx.x] = begin;
    shared.part_first[threadIdx.x] = part.first;
  }
  if (threadIdx.x == 0) shared.part_begin[args.parts] = total;
  __syncthreads();
  const TopKCandidate* list = args.candidates + row * kSplitTopKListed;
  int32_t* positions = args.top_k.positions + row * args.top_k.k;
  select_exact<kThreads, kVectors>(
      listed, {bin.index << kBinShift, kBinShift, bin.wanted}, shared.select,
      [&](uint32_t at, uint32_t(&keys)[4]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const uint32_t element = at + i;
          keys[i] =
              element < listed ? __ldcg(&list[listed_at(shared, args.parts, element)].key) : 0;
        }
      },
      [&](uint32_t at, uint32_t element) {
        positions[at] = __ldcg(&list[listed_at(shared, args.parts, element)].index);
      });
}

// All blocks of the row have read the histogram and counted: ready for the next launch.
__device__ void reset_row(const SplitTopKArgs& args, int64_t row) {
  uint32_t* histogram = args.histogram + row * kSplitTopKBins;
  for (int i = threadIdx.x; i < kSplitTopKBins; i += kThreads) histogram[i] = 0;
  if (threadIdx.x == 0) args.counters[row] = {0, 0};
}

__global__ void __launch_bounds__(kThreads, 1) top_k_gather(SplitTopKArgs args) {
  __shared__ Shared shared;
  const RowPart part = part_of_block(args);
  const int k = args.top_k.k;
  int32_t* positions = args.top_k.positions + part.row * k;
  if (part.visible <= static_cast<uint32_t>(k)) {
    if (part.part == 0) take_all<kThreads>(part.visible, k, positions);
    return;
  }
  const Bin bin = find_row_bin(args, part.row, shared);
  // Bin 0 holds NaN only, and with it everything passes: not listed.
  if (bin.index > 0) list_part(args, part, bin.index, shared);
  if (!arrive(args.counters[part.row], args.parts, shared)) return;
  const uint32_t listed = __ldcg(&args.counters[part.row].listed);
  __syncthreads();  // read by all before it is reset
  reset_row(args, part.row);
  if (bin.index > 0 && listed <= kSplitTopKListed) {
    select_from_list(args, part.row, listed, bin, shared);
    return;
  }
  const float* scores = args.top_k.scores + part.row * args.top_k.scores_stride;
  select_exact<kThreads, kVectors>(
      part.visible, {0, 32, static_cast<uint32_t>(k)}, shared.select,
      [&](uint32_t at, uint32_t(&keys)[4]) { load_keys(scores, at, part.visible, keys); },
      [&](uint32_t at, uint32_t index) { positions[at] = static_cast<int32_t>(index); });
}

}  // namespace

cudaError_t launch_top_k_gather(const SplitTopKArgs& args, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(args.top_k.rows * args.parts);
  top_k_gather<<<blocks, kThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace topknot::attention
