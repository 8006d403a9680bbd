// What the score kernels share: 16 keys as the A operand of mma.sync, one query's heads as B, and
// the sum over heads. Everything is code of sm_80.
//
// The order in which a dot product visits its 128 dimensions is free as long as both operands agree
// on it. Lane (g, t) = (lane / 4, lane % 4) of a fragment holds, of rows g and g + 8, 16 bytes at a
// time: one load fills the A registers of two k-steps without ldmatrix or shared memory.
//   bf16   chunk c of 4 is dims 32c + 8t ..: a quad reads 64 contiguous bytes of a row
//   fp8    chunk c is dims 32t + 8c ..: words 33 * g + 8t + i of a tile of 132-byte rows fall into
//          32 different banks
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/indexer/cuda/index_scores.h"

namespace topknot::attention {

inline constexpr int kTunedHeadDim = 128;
inline constexpr int kTileKeys = 16;              // m of m16n8k16
inline constexpr int kKeySteps = 128 / 16;        // k-steps of a dot product
inline constexpr int kHeadTileChunks = 4 * 32;    // 16-byte chunks of 8 heads of one query
inline constexpr float kFp8AsHalfScale = 0x1p8f;  // e4m3_pair_as_half() is 2^-8 of the value

using KeyFragment = uint32_t[kKeySteps][4];

__device__ inline void mma_m16n8k16_f32_bf16_bf16_f32(float (&c)[4], const uint32_t (&a)[4],
                                                      uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline void mma_m16n8k16_f32_f16_f16_f32(float (&c)[4], const uint32_t (&a)[4],
                                                    uint32_t b0, uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <IndexKeyFormat kFormat>
__device__ inline void multiply_tile(float (&c)[4], const uint32_t (&a)[4], uint32_t b0,
                                     uint32_t b1) {
  if constexpr (kFormat == IndexKeyFormat::kBf16) {
    mma_m16n8k16_f32_bf16_bf16_f32(c, a, b0, b1);
  } else {
    mma_m16n8k16_f32_f16_f16_f32(c, a, b0, b1);
  }
}

// Unlike fmaxf it keeps NaN, as the oracle does.
__device__ inline float relu(float x) {
  float out;
  asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(out) : "f"(x));
  return out;
}

// A key is read once by a block: it need not displace what stays in the first-level cache.
__device__ inline uint4 load_once(const std::byte* from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

__device__ inline void copy_async_16(void* shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
               "l"(global)
               : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Returns when at most kPending of this thread's groups are still under way.
template <int kPending>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// `tile` is the first of 16 consecutive rows of 256 bytes.
__device__ inline void load_bf16_keys(const std::byte* tile, int lane, KeyFragment& a) {
  const std::byte* row = tile + (lane / 4) * (kTunedHeadDim * 2) + (lane % 4) * 16;
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    const uint4 low = load_once(row + c * 64);
    const uint4 high = load_once(row + c * 64 + 8 * kTunedHeadDim * 2);
    a[2 * c][0] = low.x, a[2 * c][1] = high.x, a[2 * c][2] = low.y, a[2 * c][3] = high.y;
    a[2 * c + 1][0] = low.z, a[2 * c + 1][1] = high.z;
    a[2 * c + 1][2] = low.w, a[2 * c + 1][3] = high.w;
  }
}

// Bytes kLow and kLow + 1 of `word`, e4m3, as two f16 that are exactly 2^-8 of them: sign, exponent
// and mantissa shift into place, subnormals included. (e4m3's NaN is not kept; the scale is NaN.)
template <int kLow>
__device__ inline uint32_t e4m3_pair_as_half(uint32_t word) {
  const uint32_t spread = __byte_perm(word, 0, kLow == 0 ? 0x1404 : 0x3424);
  return (spread & 0x8000'8000u) | ((spread >> 1) & 0x3F80'3F80u);
}

// `tile` is the first of 16 consecutive rows of 132 bytes, in shared or global memory.
__device__ inline void load_fp8_keys(const std::byte* tile, int lane, KeyFragment& a) {
  constexpr int kRowWords = kFp8IndexRowBytes / 4;
  const auto* row =
      reinterpret_cast<const uint32_t*>(tile) + (lane / 4) * kRowWords + (lane % 4) * 8;
#pragma unroll
  for (int i = 0; i < kKeySteps; ++i) {
    const uint32_t low = row[i];
    const uint32_t high = row[8 * kRowWords + i];
    a[i][0] = e4m3_pair_as_half<0>(low);
    a[i][1] = e4m3_pair_as_half<0>(high);
    a[i][2] = e4m3_pair_as_half<2>(low);
    a[i][3] = e4m3_pair_as_half<2>(high);
  }
}

__device__ inline float fp8_key_scale(const std::byte* tile, int row) {
  return *reinterpret_cast<const float*>(tile + row * kFp8IndexRowBytes + kFp8IndexHeadDim) *
         kFp8AsHalfScale;
}

// Where chunk `i` of a query's B fragments comes from, in elements from the query's first. The
// fragments of head tile n are chunks [n * 128, n * 128 + 128): four for each lane, lanes adjacent,
// so that shared memory is read without conflicts.
template <IndexKeyFormat kFormat>
__device__ inline int query_chunk_source(int i) {
  const int head = i / kHeadTileChunks * 8 + i % 32 / 4;
  const int c = i / 32 % 4;
  const int t = i % 4;
  return head * kTunedHeadDim +
         (kFormat == IndexKeyFormat::kBf16 ? 32 * c + 8 * t : 32 * t + 8 * c);
}

// Adds to sums[2m] and sums[2m + 1] this lane's part of the scores of rows g and g + 8 of tile m:
// heads 2t, 2t + 1 of each head tile. kGroup head tiles are in flight at once.
template <IndexKeyFormat kFormat, int kHeadTiles, int kTiles, int kGroup>
__device__ inline void score_keys(const KeyFragment (&a)[kTiles], const uint4* query,
                                  const float* weights, int lane, float (&sums)[2 * kTiles]) {
#pragma unroll
  for (int first = 0; first < kHeadTiles; first += kGroup) {
    float dots[kTiles][kGroup][4] = {};
#pragma unroll
    for (int c = 0; c < 4; ++c) {
#pragma unroll
      for (int n = 0; n < kGroup; ++n) {
        const uint4 b = query[(first + n) * kHeadTileChunks + c * 32 + lane];
#pragma unroll
        for (int m = 0; m < kTiles; ++m) multiply_tile<kFormat>(dots[m][n], a[m][2 * c], b.x, b.y);
#pragma unroll
        for (int m = 0; m < kTiles; ++m) {
          multiply_tile<kFormat>(dots[m][n], a[m][2 * c + 1], b.z, b.w);
        }
      }
    }
#pragma unroll
    for (int n = 0; n < kGroup; ++n) {
      const float2 w = reinterpret_cast<const float2*>(weights)[(first + n) * 4 + lane % 4];
#pragma unroll
      for (int m = 0; m < kTiles; ++m) {
        sums[2 * m] = fmaf(w.x, relu(dots[m][n][0]), sums[2 * m]);
        sums[2 * m] = fmaf(w.y, relu(dots[m][n][1]), sums[2 * m]);
        sums[2 * m + 1] = fmaf(w.x, relu(dots[m][n][2]), sums[2 * m + 1]);
        sums[2 * m + 1] = fmaf(w.y, relu(dots[m][n][3]), sums[2 * m + 1]);
      }
    }
  }
}

// Of two values that each lane of a quad has a part of, the sum of the first in lanes 0 and 2, of
// the second in lanes 1 and 3: t is added to t ^ 1, then the pairs to each other.
__device__ inline float add_lane_pairs(float first, float second, int lane) {
  const bool odd = (lane & 1) != 0;
  return (odd ? second : first) + __shfl_xor_sync(0xFFFF'FFFFu, odd ? first : second, 1);
}

// The score of row g + 8 * (t % 2) of a tile.
__device__ inline float sum_over_heads(const float (&sums)[2], int lane) {
  const float pair = add_lane_pairs(sums[0], sums[1], lane);
  return pair + __shfl_xor_sync(0xFFFF'FFFFu, pair, 2);
}

// The score of row g + 8t of two adjacent tiles.
__device__ inline float sum_over_heads(const float (&sums)[4], int lane) {
  const float first = add_lane_pairs(sums[0], sums[1], lane);
  const float second = add_lane_pairs(sums[2], sums[3], lane);
  const bool high = (lane & 2) != 0;
  return (high ? second : first) + __shfl_xor_sync(0xFFFF'FFFFu, high ? first : second, 2);
}

}  // namespace topknot::attention
