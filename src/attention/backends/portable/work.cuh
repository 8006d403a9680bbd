// What a block of the attention kernels works on, and where its results go.
#pragma once

#include <cmath>

#include "attention/backends/portable/mma.cuh"
#include "attention/backends/portable/tile_shape.h"

namespace topknot::attention::portable {

// Heads head0 .. head0 + kHeads - 1 of a token, over tiles tile_begin .. tile_end - 1 of its list.
// Blocks that share rows are neighbours: heads first, then the parts of a list, then tokens.
struct Work {
  int64_t token;
  int head0, split;
  const int32_t* pages;
  int count, tile_begin, tile_end;

  // `item` is the block's index with everything else that the grid counts divided out.
  __device__ static Work of(const MlaKernelArgs& args, uint32_t item, int tile_heads) {
    const uint32_t head_tiles = (args.heads + tile_heads - 1) / tile_heads;
    const uint32_t rest = item / head_tiles;
    const uint32_t splits = args.splits;
    Work w;
    w.head0 = static_cast<int>(item - rest * head_tiles) * tile_heads;
    w.token = rest / splits;
    w.split = static_cast<int>(rest % splits);
    const int64_t list = args.lists.list_of ? args.lists.list_of[w.token] : w.token;
    w.pages = args.lists.pages + list * args.lists.stride;
    w.count = args.lists.counts ? args.lists.counts[w.token] : args.lists.count;
    const int tiles = (w.count + kTileRows - 1) / kTileRows;
    const int per_split = (tiles + args.splits - 1) / args.splits;
    w.tile_begin = min(w.split * per_split, tiles);
    w.tile_end = min(w.tile_begin + per_split, tiles);
    return w;
  }
};

// The entry of the list that row `i` < count lies in.
__device__ __forceinline__ const int32_t* page_of(const MlaKernelArgs& args, const Work& work,
                                                  int i) {
  return work.pages + (i >> args.lists.page_shift);
}

// Slots fit 31 bits; their byte offsets do not.
__device__ __forceinline__ int slot_of(const MlaKernelArgs& args, int page, int i) {
  const int shift = args.lists.page_shift;
  return (page << shift) + (i & ((1 << shift) - 1));
}

__device__ __forceinline__ const uint8_t* row_at(const MlaKernelArgs& args, uint32_t slot) {
  return static_cast<const uint8_t*>(args.rows) +
         static_cast<uint64_t>(slot) * static_cast<uint32_t>(args.row_bytes);
}

// Natural log of a sum kept as 2^m * l; -inf for an empty one.
__device__ __forceinline__ float natural_lse(float m, float l) {
  constexpr float kLn2 = 0.693147180559945309f;
  return l != 0 ? (m + log2f(l)) * kLn2 : -INFINITY;
}

__device__ __forceinline__ float log2_lse(float m, float l) {
  return l != 0 ? m + log2f(l) : -INFINITY;
}

// Index of a head's partial results.
__device__ __forceinline__ int64_t partial_row(const MlaKernelArgs& args, int64_t token, int split,
                                               int head) {
  return (token * args.splits + split) * args.heads + head;
}

// Two blocks that share a token's list: the first to finish leaves its part, the second waits until
// that is written and adds it to its own. It waits for a block that already runs, so never for
// long.
struct Pair {
  static constexpr uint32_t kWritten = 1u << 16;
  uint32_t* ticket;
  uint32_t* flag;  // in shared memory

  __device__ Pair(const MlaKernelArgs& args, const Work& work, int tile_heads,
                  uint32_t* shared_flag)
      : ticket(args.tickets + work.token * ((args.heads + tile_heads - 1) / tile_heads) +
               work.head0 / tile_heads),
        flag(shared_flag) {}

  // By all threads of the block; so are the others.
  __device__ bool is_first() const {
    __syncthreads();
    if (threadIdx.x == 0) *flag = atomicAdd(ticket, 1);
    __syncthreads();
    return (*flag & 1) == 0;
  }
  __device__ void leave() const {
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(ticket, kWritten);
  }
  __device__ void wait() const {
    if (threadIdx.x == 0) {
      while ((atomicAdd(ticket, 0) & kWritten) == 0) {
      }
      *ticket = 0;  // for the next launch
    }
    __syncthreads();
    __threadfence();
  }
};

}  // namespace topknot::attention::portable
