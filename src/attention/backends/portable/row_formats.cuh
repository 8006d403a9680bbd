// How rows of each cache format come into shared memory as bf16.
//
// kThreadsPerRow neighbouring threads of one warp serve a row: fetch() starts the copies of the
// bytes, convert() widens them into the tile. Every thread of a row sees what the others fetched
// after cp_async_wait() and __syncwarp(). `part` is the thread's place in its row. A row that is
// not there is fetched as zero bytes, which are zeros in every format.
#pragma once

#include <cuda_fp16.h>

#include "attention/backends/portable/mma.cuh"
#include "attention/backends/portable/tile_shape.h"

namespace topknot::attention::portable {

inline constexpr int kLatentChunks = kRank * 2 / 16;  // of 16 bytes, in a tile's row

struct RowCopy {
  const uint8_t* row;  // in global memory
  bool present;
  int part;
  int rope_chunks;  // 16 bytes of bf16 each

  // Chunks part, part + 8, ...: one address, and offsets that are part of the instructions.
  template <int kCount>
  __device__ __forceinline__ void start(uint32_t to) const {
    const uint8_t* from = row + part * 16;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      cp_async_16(to + part * 16 + i * kThreadsPerRow * 16, from + i * kThreadsPerRow * 16,
                  present ? 16 : 0);
    }
  }
  // Chunk `first` + part where that is one of `count`; zeros behind them.
  __device__ __forceinline__ void start_padded(uint32_t to, int first, int count) const {
    cp_async_16(to + part * 16 + first * 16, row + part * 16 + first * 16,
                present && part < count ? 16 : 0);
  }
};

// Rows are copied into the tile itself.
struct Bf16Rows {
  static constexpr RowFormat kFormat = RowFormat::kBf16;
  static constexpr bool kConverts = false;
  static constexpr int kStages = 2;
  static constexpr int kAhead = 1;  // tiles whose copies are in flight while one is computed
  static constexpr int kStagedRowBytes = kTileRowBytes;
  static constexpr int kRopeChunk = kLatentChunks;  // of a staged row

  __device__ static void fetch(uint32_t to, uint8_t*, const RowCopy& copy) {
    copy.start<kLatentChunks / kThreadsPerRow>(to);
    copy.start_padded(to, kLatentChunks, copy.rope_chunks);
  }
};

// Four e4m3 to bf16, times scale / 256. An e4m3 is an fp16 with four exponent bits: moved into
// place it is 2^-8 of its value, subnormals too.
__device__ __forceinline__ uint2 e4m3x4_to_bf16x4(uint32_t v, float scale_256) {
  uint32_t half[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const uint32_t wide = __byte_perm(v, 0, i == 0 ? 0x1404 : 0x3424);
    half[i] = (wide & 0x80008000u) | ((wide & 0x7f007f00u) >> 1);
  }
  const float2 a = __half22float2(reinterpret_cast<const __half2&>(half[0]));
  const float2 b = __half22float2(reinterpret_cast<const __half2&>(half[1]));
  return {pack_bf16x2(a.x * scale_256, a.y * scale_256),
          pack_bf16x2(b.x * scale_256, b.y * scale_256)};
}

struct Fp8DsRows {
  static constexpr RowFormat kFormat = RowFormat::kFp8Ds;
  static constexpr bool kConverts = true;
  static constexpr int kStages = 2;
  static constexpr int kAhead = 2;
  static constexpr int kStagedRowBytes = kRawRowBytes;
  static constexpr int kRopeChunk = kLatentChunks;  // of a converted row
  static constexpr int kScaleChunk = kRank / 16;

  __device__ static void fetch(uint32_t to, uint8_t*, const RowCopy& copy) {
    copy.start<kScaleChunk / kThreadsPerRow>(to);
    copy.start_padded(to, kScaleChunk, copy.rope_chunks + 1);
    if (copy.part == 0) {
      copy.start_padded(to, kScaleChunk + kThreadsPerRow, copy.rope_chunks + 1 - kThreadsPerRow);
    }
  }

  // A thread's chunks are 128 bytes apart: each has its own scale.
  __device__ static void convert(const uint8_t* raw, uint8_t* tile_row, int part, int rope_chunks) {
    const float* scales = reinterpret_cast<const float*>(raw + kScaleChunk * 16);
#pragma unroll 2  // all four at once would not fit beside 200 registers of queries and sums
    for (int i = 0; i < kScaleGroups; ++i) {
      const int chunk = part + i * kThreadsPerRow;
      const float scale = scales[i] * 256;
      const uint4 v = *reinterpret_cast<const uint4*>(raw + chunk * 16);
      const uint2 a = e4m3x4_to_bf16x4(v.x, scale), b = e4m3x4_to_bf16x4(v.y, scale);
      const uint2 c = e4m3x4_to_bf16x4(v.z, scale), d = e4m3x4_to_bf16x4(v.w, scale);
      store_swapped(tile_row + chunk * 32, part, {a.x, a.y, b.x, b.y}, {c.x, c.y, d.x, d.y});
    }
    copy_rope(raw, tile_row, part, rope_chunks);
  }

  // Half of the threads store their second 16 bytes first: eight threads, all banks.
  __device__ static void store_swapped(uint8_t* to, int part, uint4 low, uint4 high) {
    const bool swap = part >= kThreadsPerRow / 2;
    auto* out = reinterpret_cast<uint4*>(to);
    out[swap ? 1 : 0] = swap ? high : low;
    out[swap ? 0 : 1] = swap ? low : high;
  }

  __device__ static void copy_rope(const uint8_t* raw, uint8_t* tile_row, int part,
                                   int rope_chunks) {
    if (part >= rope_chunks) return;
    *reinterpret_cast<uint4*>(tile_row + (kLatentChunks + part) * 16) =
        *reinterpret_cast<const uint4*>(raw + (kScaleChunk + 1 + part) * 16);
  }
};

// fp8_ds left as it is: the kernel that reads it so converts fragments in registers.
struct Fp8DsCodes : Fp8DsRows {
  static constexpr bool kConverts = false;
  static constexpr int kStages = 3;
  static constexpr int kAhead = 2;
  static constexpr int kStagedRowBytes = kCodeRowBytes;
  static constexpr int kRopeChunk = kScaleChunk + 1;
};

// Four int8 times a scale. A byte in the mantissa of 2^23 is 2^23 plus the byte.
__device__ __forceinline__ uint2 int8x4_to_bf16x4(uint32_t v, float scale) {
  const uint32_t biased = v ^ 0x80808080u;
  float x[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    x[i] = (__uint_as_float(__byte_perm(biased, 0x4b000000u, 0x7440 + i)) - 8388736.0f) * scale;
  }
  return {pack_bf16x2(x[0], x[1]), pack_bf16x2(x[2], x[3])};
}

// 612 is no multiple of 16: a row is fetched from the multiple of 16 before it, and how far before
// is kept behind its bytes. The last chunk ends with the row, so nothing outside the cache is read.
// kUnroll: chunks of 8 values that a thread converts at once; one beside 200 registers of queries
// and sums.
template <int kUnroll>
struct Q8Rows {
  static constexpr RowFormat kFormat = RowFormat::kQ8_0;
  static constexpr bool kConverts = true;
  static constexpr int kStages = 2;
  static constexpr int kAhead = 2;
  static constexpr int kStagedRowBytes = kRawRowBytes;
  static constexpr int kRopeChunk = kLatentChunks;  // of a converted row
  static constexpr int kBlockBytes = 34;
  static constexpr int kShiftOffset = kRawRowBytes - 16;

  __device__ static int row_bytes(int rope_chunks) {
    return (kRank + rope_chunks * 8 + 31) / 32 * kBlockBytes;
  }

  __device__ static void fetch(uint32_t to, uint8_t* raw, const RowCopy& copy) {
    const int shift = static_cast<int>(reinterpret_cast<uintptr_t>(copy.row) & 15);
    if (copy.part == 0) *reinterpret_cast<int*>(raw + kShiftOffset) = shift;
    const int end = shift + row_bytes(copy.rope_chunks);
    for (int at = copy.part * 16; at < end; at += kThreadsPerRow * 16) {
      cp_async_16(to + at, copy.row - shift + at, copy.present ? min(16, end - at) : 0);
    }
  }

  // Eight values at a time. Blocks are 34 bytes apart, so every other one is out of step with words
  // of 4 bytes: behind the scale of an even block.
  __device__ static void convert(const uint8_t* raw, uint8_t* tile_row, int part, int rope_chunks) {
    const uint8_t* row = raw + *reinterpret_cast<const int*>(raw + kShiftOffset);
    const int chunks = row_bytes(rope_chunks) / kBlockBytes * 4;
#pragma unroll kUnroll
    for (int chunk = part; chunk < chunks; chunk += kThreadsPerRow) {
      const uint8_t* block = row + chunk / 4 * kBlockBytes;
      const bool odd = (chunk & 4) != 0;
      const float scale = __half2float(*reinterpret_cast<const __half*>(block));
      const auto* words = reinterpret_cast<const uint32_t*>(block + (odd ? 2 : 0) + chunk % 4 * 8);
      const uint32_t select = odd ? 0x3210 : 0x5432;
      const uint2 low = int8x4_to_bf16x4(__byte_perm(words[0], words[1], select), scale);
      const uint2 high = int8x4_to_bf16x4(__byte_perm(words[1], odd ? 0 : words[2], select), scale);
      *reinterpret_cast<uint4*>(tile_row + chunk * 16) = {low.x, low.y, high.x, high.y};
    }
  }
};

}  // namespace topknot::attention::portable
