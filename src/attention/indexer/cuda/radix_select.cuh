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

#include <cstdint>

namespace topknot::attention {

inline constexpr int kDigitBits = 11;
inline constexpr int kDigitBins = 1 << kDigitBits;
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
  float4 scores = make_float4(NAN, NAN, NAN, NAN);
  if (at + 4 <= count) {
    scores = *reinterpret_cast<const float4*>(row + at);
  } else {
    if (at < count) scores.x = row[at];
    if (at + 1 < count) scores.y = row[at + 1];
    if (at + 2 < count) scores.z = row[at + 2];
  }
  keys[0] = order_key(scores.x);
  keys[1] = order_key(scores.y);
  keys[2] = order_key(scores.z);
  keys[3] = order_key(scores.w);
}

// Where the k-th largest lies: among the keys of a bin, of which `wanted` are taken.
struct Bin {
  uint32_t index;
  uint32_t wanted;
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

// Exclusive prefix sum over the threads of the block; `total` receives the sum of all. Ends with
// all threads having read the scratch only after the caller's next barrier.
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

// The highest bin such that it and those above count at least `wanted`; there is one.
template <int kThreads, int kBins>
__device__ Bin find_bin(const uint32_t* counts, uint32_t wanted, BlockScratch<kThreads>& scratch) {
  constexpr int kEach = kBins / kThreads;
  static_assert(kEach * kThreads == kBins);
  const int top = kBins - 1 - static_cast<int>(threadIdx.x) * kEach;
  uint32_t sum = 0;
#pragma unroll
  for (int i = 0; i < kEach; ++i) sum += counts[top - i];
  uint32_t total;
  uint32_t above = scan_block(sum, scratch, &total);
  if (above < wanted && above + sum >= wanted) {
    int bin = top;
    while (above + counts[bin] < wanted) above += counts[bin--];
    scratch.found = {static_cast<uint32_t>(bin), wanted - above};
  }
  __syncthreads();
  return scratch.found;
}

// Of each element whether it is taken, as positions in the output.
struct Threshold {
  uint32_t key;
  uint32_t wanted;  // of the elements equal to it, the first so many
};

template <int kThreads, int kMaxVectors>
struct ChunkTotals {
  // [vector][warp]; above in the low half, equal in the high one, each at most the chunk
  uint32_t above_and_equal[kMaxVectors * kThreads / 32];
  uint32_t chunk_total;
};

// Elements of a chunk seen by the blocks of the output.
struct Progress {
  uint32_t above = 0;
  uint32_t equal = 0;
};

// Per-thread counts of up to four vectors in the bytes of a word; a warp's sum is at most 128.
template <int kVectors>
struct PackedCounts {
  static constexpr int kWords = (kVectors + 3) / 4;
  uint32_t words[kWords] = {};
  __device__ void add(int vector, uint32_t count) { words[vector / 4] += count << vector % 4 * 8; }
  __device__ uint32_t operator[](int vector) const {
    return words[vector / 4] >> vector % 4 * 8 & 0xFF;
  }
};

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
// order; `progress` is what earlier chunks held and is brought up to date.
template <int kThreads, int kVectors, class Totals, class Emit>
__device__ void write_taken(const uint32_t (&keys)[kVectors][4], Threshold threshold,
                            Totals& totals, Progress& progress, Emit emit) {
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  PackedCounts<kVectors> above, equal;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    uint32_t a = 0, e = 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      a += keys[v][i] > threshold.key;
      e += keys[v][i] == threshold.key;
    }
    above.add(v, a);
    equal.add(v, e);
  }
  // Both become what the lanes before this one hold; the last lane has the warp's totals.
#pragma unroll
  for (int w = 0; w < PackedCounts<kVectors>::kWords; ++w) {
    const uint32_t above_here = above.words[w], equal_here = equal.words[w];
    const uint32_t above_sum = scan_warp(above_here), equal_sum = scan_warp(equal_here);
    if (lane == 31) {
#pragma unroll
      for (int i = 0; i < 4 && w * 4 + i < kVectors; ++i) {
        totals.above_and_equal[(w * 4 + i) * (kThreads / 32) + warp] =
            (above_sum >> i * 8 & 0xFF) | (equal_sum >> i * 8 & 0xFF) << 16;
      }
    }
    above.words[w] = above_sum - above_here;
    equal.words[w] = equal_sum - equal_here;
  }
  __syncthreads();
  if (warp == 0) scan_totals<kVectors * kThreads / 32>(totals);
  __syncthreads();
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const uint32_t before = totals.above_and_equal[v * (kThreads / 32) + warp];
    uint32_t a = progress.above + (before & 0xFFFF) + above[v];
    uint32_t e = progress.equal + (before >> 16) + equal[v];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const bool is_above = keys[v][i] > threshold.key;
      const bool is_equal = keys[v][i] == threshold.key;
      if (is_above || (is_equal && e < threshold.wanted)) {
        emit(a + min(e, threshold.wanted), (v * kThreads + threadIdx.x) * 4 + i);
      }
      a += is_above;
      e += is_equal;
    }
  }
  const uint32_t total = totals.chunk_total;
  progress.above += total & 0xFFFF;
  progress.equal += total >> 16;
  __syncthreads();  // the totals may be written again
}

template <int kThreads, int kMaxVectors>
struct SelectScratch {
  uint32_t counts[kDigitBins];
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
  while (sought.bits > 0) {
    const int width = min(sought.bits, kDigitBits);
    const int shift = sought.bits - width;
    const uint32_t mask = (1u << width) - 1;
    // Bits above the digit; a shift by 32 would leave the value.
    const uint32_t prefix_mask = sought.bits == 32 ? 0 : 0xFFFF'FFFFu << sought.bits;
    for (int i = threadIdx.x; i < kDigitBins; i += kThreads) scratch.counts[i] = 0;
    __syncthreads();
    for (uint32_t first = 0; first < end; first += kChunk) {
      if (!kResident) load_chunk(first);
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        if (first + v * kThreads * 4 >= count) break;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if ((keys[v][i] & prefix_mask) == sought.prefix) {
            atomicAdd(&scratch.counts[keys[v][i] >> shift & mask], 1u);
          }
        }
      }
    }
    __syncthreads();
    const Bin bin = find_bin<kThreads, kDigitBins>(scratch.counts, sought.wanted, scratch.block);
    sought = {sought.prefix | bin.index << shift, shift, bin.wanted};
  }
  Progress progress;
  for (uint32_t first = 0; first < end; first += kChunk) {
    if (!kResident) load_chunk(first);
    write_taken<kThreads, kVectors>(keys, {sought.prefix, sought.wanted}, scratch.totals, progress,
                                    [&](uint32_t at, int i) { emit(at, first + i); });
  }
}

// As select_in_chunks. Rows that fit in the registers are read once; chunks of longer rows are
// smaller, since the addresses of their loads take registers too. Counts are those of int32
// positions: a sum of one and a chunk does not wrap.
template <int kThreads, int kMaxVectors, class Load, class Emit>
__device__ void select_exact(uint32_t count, Selection sought,
                             SelectScratch<kThreads, kMaxVectors>& scratch, Load load, Emit emit) {
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
