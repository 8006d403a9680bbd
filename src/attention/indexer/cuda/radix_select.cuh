// Exact selection by radix, within one block. Scores become unsigned keys of the same order; the
// k-th largest key is found one digit at a time from the top, by counting; then every element above
// it and the first few equal to it are written in the order of their indices.
//
// A chunk of kThreads * kVectors * 4 elements is held in registers, so a row that fits in one chunk
// is read once. Element order: vector, then thread, then the four of a vector, so that a load is
// 16 bytes wide and the loads of a warp are adjacent.
// Elements behind the end have key 0, which only NaN has too: they sort last, have the highest
// indices, and are never taken because there are more elements than k.
#pragma once

#include <cmath>
#include <cstdint>

namespace topknot::attention {

inline constexpr unsigned kWholeWarp = 0xFFFF'FFFFu;

// Larger floats have larger keys; NaN has 0; -0 and +0 are equal.
__device__ inline uint32_t order_key(float score) {
  const int bits = __float_as_int(score + 0.0f);
  const uint32_t key =
      static_cast<uint32_t>(bits) ^ (static_cast<uint32_t>(bits >> 31) | 0x8000'0000u);
  return score == score ? key : 0;
}

// Scores [at, at + 4) of a row of `count` as keys; `at` is a multiple of 4.
__device__ inline void load_keys(const float* row, uint32_t at, uint32_t count,
                                 uint32_t (&keys)[4]) {
  float scores[4] = {NAN, NAN, NAN, NAN};
  if (at + 4 <= count) {
    const float4 quad = *reinterpret_cast<const float4*>(row + at);
    scores[0] = quad.x, scores[1] = quad.y, scores[2] = quad.z, scores[3] = quad.w;
  } else {
#pragma unroll
    for (int i = 0; i < 3; ++i) {
      if (at + i < count) scores[i] = row[at + i];
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) keys[i] = order_key(scores[i]);
}

// Where the k-th largest lies: among the `count` keys of a bin, of which `wanted` are taken.
struct Bin {
  uint32_t index;
  uint32_t wanted;
  uint32_t count;
};

template <int kThreads>
struct BlockScratch {
  static constexpr int kWarps = kThreads / 32;
  uint32_t warp_sums[kWarps];
  Bin found;
};

// Inclusive prefix sum over the lanes of a warp.
__device__ inline uint32_t scan_warp(uint32_t value) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const uint32_t other = __shfl_up_sync(kWholeWarp, value, step);
    if (lane >= step) value += other;
  }
  return value;
}

// Exclusive prefix sum over the threads of the block; `total` receives the sum of all. The scratch
// may be written again after the caller's next barrier.
template <int kThreads>
__device__ uint32_t scan_block(uint32_t value, BlockScratch<kThreads>& scratch, uint32_t* total) {
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const uint32_t inclusive = scan_warp(value);
  if (lane == 31) scratch.warp_sums[warp] = inclusive;
  __syncthreads();
  const uint32_t sums =
      scan_warp(lane < BlockScratch<kThreads>::kWarps ? scratch.warp_sums[lane] : 0);
  *total = __shfl_sync(kWholeWarp, sums, 31);
  const uint32_t before = __shfl_sync(kWholeWarp, sums, (warp + 31) % 32);
  return (warp == 0 ? 0 : before) + inclusive - value;
}

// The bins of a thread: the highest of all belong to thread 0.
template <int kThreads, int kBins>
struct ThreadBins {
  static constexpr int kCount = kBins / kThreads;
  static_assert(kCount * kThreads == kBins && kCount % 4 == 0);
  uint32_t counts[kCount];  // of bins lowest(), lowest() + 1, ..

  __device__ static int lowest() { return kBins - (static_cast<int>(threadIdx.x) + 1) * kCount; }
  __device__ void set_quad(int i, uint4 quad) {
    counts[i] = quad.x, counts[i + 1] = quad.y, counts[i + 2] = quad.z, counts[i + 3] = quad.w;
  }
};

// The highest bin such that it and those above count at least `wanted`; there is one.
template <int kThreads, int kBins>
__device__ Bin find_bin(const ThreadBins<kThreads, kBins>& bins, uint32_t wanted,
                        BlockScratch<kThreads>& scratch) {
  constexpr int kCount = ThreadBins<kThreads, kBins>::kCount;
  uint32_t sum = 0;
#pragma unroll
  for (int i = 0; i < kCount; ++i) sum += bins.counts[i];
  uint32_t total;
  uint32_t above = scan_block(sum, scratch, &total);
  if (above < wanted && above + sum >= wanted) {
    bool found = false;
#pragma unroll
    for (int i = kCount - 1; i >= 0; --i) {
      if (!found && above + bins.counts[i] >= wanted) {
        found = true;
        scratch.found = {static_cast<uint32_t>(bins.lowest() + i), wanted - above, bins.counts[i]};
      }
      above += bins.counts[i];
    }
  }
  __syncthreads();
  return scratch.found;
}

// What is taken: every element with a larger key, and of those with this key the first `wanted`.
struct Threshold {
  uint32_t key;
  uint32_t wanted;
};

// Elements above and equal to the threshold in the chunks before.
struct Progress {
  uint32_t above = 0;
  uint32_t equal = 0;
};

template <int kThreads, int kMaxVectors>
struct ChunkTotals {
  // [vector][warp]; above in the low half, equal in the high one, each at most the chunk
  uint32_t above_and_equal[kMaxVectors * kThreads / 32];
  uint32_t chunk_total;
};

// For each of up to eight vectors a count, in bytes: a warp's sum is at most 128.
struct VectorCounts {
  uint32_t even = 0;
  uint32_t odd = 0;

  // Four bits of `mask` for each vector.
  __device__ static VectorCounts of_bits(uint32_t mask) {
    uint32_t pairs = mask - (mask >> 1 & 0x5555'5555u);
    pairs = (pairs & 0x3333'3333u) + (pairs >> 2 & 0x3333'3333u);
    return {pairs & 0x0F0F'0F0Fu, pairs >> 4 & 0x0F0F'0F0Fu};
  }
  __device__ uint32_t operator[](int vector) const {
    return (vector % 2 == 0 ? even : odd) >> vector / 2 * 8 & 0xFF;
  }
};

// Replaces counts by those of the lanes before; `sums` receives the counts of lanes 0 .. here.
__device__ inline void scan_counts(VectorCounts& counts, VectorCounts& sums) {
  sums = {scan_warp(counts.even), scan_warp(counts.odd)};
  counts = {sums.even - counts.even, sums.odd - counts.odd};
}

// Turns totals[vector][warp] into exclusive prefix sums. One warp does it.
template <int kCount, class Totals>
__device__ void scan_totals(Totals& totals) {
  constexpr int kEach = (kCount + 31) / 32;
  const int lane = threadIdx.x % 32;
  uint32_t values[kEach];
  uint32_t sum = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int at = lane * kEach + i;
    values[i] = at < kCount ? totals.above_and_equal[at] : 0;
    sum += values[i];
  }
  const uint32_t inclusive = scan_warp(sum);
  if (lane == 31) totals.chunk_total = inclusive;
  uint32_t before = inclusive - sum;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int at = lane * kEach + i;
    if (at < kCount) totals.above_and_equal[at] = before;
    before += values[i];
  }
}

// Calls emit(output position, element of the chunk) for each element that the threshold takes, in
// no order of time but of position; `progress` is brought up to date.
template <int kThreads, int kVectors, class Totals, class Emit>
__device__ void write_taken(const uint32_t (&keys)[kVectors][4], Threshold threshold,
                            Totals& totals, Progress& progress, Emit emit) {
  constexpr int kWarps = kThreads / 32;
  const int warp = threadIdx.x / 32;
  uint32_t above = 0, equal = 0;  // four bits a vector
#pragma unroll
  for (int i = 0; i < kVectors * 4; ++i) {
    if (keys[i / 4][i % 4] > threshold.key) above |= 1u << i;
  }
  if (threshold.wanted > 0) {
#pragma unroll
    for (int i = 0; i < kVectors * 4; ++i) {
      if (keys[i / 4][i % 4] == threshold.key) equal |= 1u << i;
    }
  }
  VectorCounts above_before = VectorCounts::of_bits(above), above_sums;
  VectorCounts equal_before = VectorCounts::of_bits(equal), equal_sums;
  scan_counts(above_before, above_sums);
  if (__any_sync(kWholeWarp, equal != 0)) scan_counts(equal_before, equal_sums);
  if (threadIdx.x % 32 == 31) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      totals.above_and_equal[v * kWarps + warp] = above_sums[v] | equal_sums[v] << 16;
    }
  }
  __syncthreads();
  if (warp == 0) scan_totals<kVectors * kWarps>(totals);
  __syncthreads();
  for (uint32_t left = above | equal; left != 0; left &= left - 1) {
    const int i = __ffs(static_cast<int>(left)) - 1;
    const int vector = i / 4;
    const uint32_t before = ((1u << i) - 1) & 0xFu << vector * 4;
    const uint32_t others = totals.above_and_equal[vector * kWarps + warp];
    const uint32_t a =
        progress.above + (others & 0xFFFF) + above_before[vector] + __popc(above & before);
    const uint32_t e =
        progress.equal + (others >> 16) + equal_before[vector] + __popc(equal & before);
    if ((above >> i & 1) != 0 || e < threshold.wanted) {
      emit(a + min(e, threshold.wanted), (vector * kThreads + threadIdx.x) * 4 + i % 4);
    }
  }
  const uint32_t total = totals.chunk_total;
  progress.above += total & 0xFFFF;
  progress.equal += total >> 16;
  __syncthreads();  // the totals may be written again
}

template <int kThreads, int kMaxVectors, int kDigitBits>
struct SelectScratch {
  static constexpr int kBits = kDigitBits;
  alignas(16) uint32_t counts[1 << kDigitBits];
  BlockScratch<kThreads> block;
  ChunkTotals<kThreads, kMaxVectors> totals;
};

// What is sought: of the elements whose key has `prefix` above its lowest `bits` bits the `wanted`
// largest, and all whose key is larger.
struct Selection {
  uint32_t prefix;
  int bits;
  uint32_t wanted;
};

template <int kThreads, int kBins>
__device__ void clear_bins(uint32_t (&counts)[kBins]) {
  for (int i = threadIdx.x; i < kBins / 4; i += kThreads) {
    reinterpret_cast<uint4*>(counts)[i] = make_uint4(0, 0, 0, 0);
  }
}

template <int kThreads, int kBins>
__device__ Bin find_counted_bin(const uint32_t (&counts)[kBins], uint32_t wanted,
                                BlockScratch<kThreads>& scratch) {
  ThreadBins<kThreads, kBins> bins;
#pragma unroll
  for (int i = 0; i < bins.kCount; i += 4) {
    bins.set_quad(i, *reinterpret_cast<const uint4*>(counts + bins.lowest() + i));
  }
  return find_bin(bins, wanted, scratch);
}

// Counts four keys by what is above their lowest `shift` bits.
template <int kBins>
__device__ void count_all(const uint32_t (&keys)[4], int shift, uint32_t (&counts)[kBins]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) atomicAdd(&counts[keys[i] >> shift], 1u);
}

// The same of those that match the prefix, by what is below it. Few do: one branch for four.
template <int kBins>
__device__ void count_matching(const uint32_t (&keys)[4], const Selection& sought, int shift,
                               uint32_t (&counts)[kBins]) {
  const uint32_t limit = 1u << sought.bits;
  uint32_t below[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) below[i] = keys[i] ^ sought.prefix;
  if (min(min(below[0], below[1]), min(below[2], below[3])) >= limit) return;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (below[i] < limit) atomicAdd(&counts[below[i] >> shift], 1u);
  }
}

// Elements in chunks of kVectors vectors a thread; one chunk stays in registers if kResident.
// load(element, keys) gives the four keys from `element` on, a multiple of 4; behind `count` 0.
// emit(output position, element) is called in ascending order of elements.
template <int kThreads, int kVectors, bool kResident, class Scratch, class Load, class Emit>
__device__ void select_in_chunks(uint32_t count, Selection sought, Scratch& scratch, Load load,
                                 Emit emit) {
  constexpr uint32_t kChunk = kThreads * kVectors * 4;
  static_assert(kChunk <= 0xFFFF);
  uint32_t keys[kVectors][4];
  const auto load_chunk = [&](uint32_t first) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const uint32_t at = first + (v * kThreads + threadIdx.x) * 4;
      if (at < count) {
        load(at, keys[v]);
      } else {
        keys[v][0] = keys[v][1] = keys[v][2] = keys[v][3] = 0;
      }
    }
  };
  const uint32_t end = kResident ? kChunk : count;  // of chunks: one, as the compiler then knows
  if (kResident) load_chunk(0);
  Threshold threshold = {sought.prefix, sought.wanted};
  while (sought.bits > 0) {
    const int width = min(sought.bits, Scratch::kBits);
    const int shift = sought.bits - width;
    clear_bins<kThreads>(scratch.counts);
    __syncthreads();
    for (uint32_t first = 0; first < end; first += kChunk) {
      if (!kResident) load_chunk(first);
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        if (first + v * kThreads * 4 >= count) break;
        if (sought.bits == 32) {
          count_all(keys[v], shift, scratch.counts);
        } else {
          count_matching(keys[v], sought, shift, scratch.counts);
        }
      }
    }
    __syncthreads();
    const Bin bin = find_counted_bin<kThreads>(scratch.counts, sought.wanted, scratch.block);
    sought = {sought.prefix | bin.index << shift, shift, bin.wanted};
    threshold = {sought.prefix, sought.wanted};
    if (bin.count == bin.wanted && sought.prefix != 0) {
      threshold = {sought.prefix - 1, 0};  // the whole bin is taken: its order is not needed
      break;
    }
  }
  Progress progress;
  for (uint32_t first = 0; first < end; first += kChunk) {
    if (!kResident) load_chunk(first);
    write_taken<kThreads, kVectors>(keys, threshold, scratch.totals, progress,
                                    [&](uint32_t at, uint32_t i) { emit(at, first + i); });
  }
}

// As select_in_chunks. Rows that fit in the registers are read once; chunks of longer rows are
// smaller, since the addresses of their loads take registers too. Counts are those of int32
// positions: a sum of one and a chunk does not wrap.
template <int kThreads, int kMaxVectors, int kDigitBits, class Load, class Emit>
__device__ void select_exact(uint32_t count, Selection sought,
                             SelectScratch<kThreads, kMaxVectors, kDigitBits>& scratch, Load load,
                             Emit emit) {
  if (count <= kThreads * kMaxVectors * 4) {
    select_in_chunks<kThreads, kMaxVectors, true>(count, sought, scratch, load, emit);
  } else {
    select_in_chunks<kThreads, 4, false>(count, sought, scratch, load, emit);
  }
}

// The selection of a row that has no more than k elements.
template <int kThreads>
__device__ void take_all(int visible, int k, int32_t* positions) {
  for (int i = threadIdx.x; i < k; i += kThreads) positions[i] = i < visible ? i : -1;
}

}  // namespace topknot::attention
