// Softmax over tiles of rows that come one after the other: a running maximum and sum for each
// head.
//
// Weights are summed as they are multiplied, rounded to bf16: what rounding does to a weight that
// dominates then cancels, and lse is off by at most 2^-9 of the sum. A maximum is raised only when
// a score exceeds it by kMaxSlack powers of two, so sums are seldom rescaled; weights stay below
// 2^kMaxSlack, where bf16 is as precise as below 1.
#pragma once

#include <cfloat>
#include <cmath>

#include "attention/backends/portable/mma.cuh"
#include "attention/backends/portable/tile_shape.h"

namespace topknot::attention::portable {

inline constexpr float kMaxSlack = 8;
inline constexpr float kNoMaximum = -FLT_MAX;  // finite, so that an empty tile is not -inf - -inf
inline constexpr uint32_t kOnes = 0x3f803f80;  // two bf16

// What a head's sums are multiplied with when its maximum rises to at least `x`; raises it.
__device__ __forceinline__ float raise_maximum(float* m, float x) {
  const float raised = fmaxf(x, *m);
  const float factor = exp2_approx(*m - raised);
  *m = raised;
  return factor;
}

// Rows lane / 4 and lane / 4 + 8 of m16 tiles, by their factors.
template <int kTiles>
__device__ __forceinline__ void rescale(float (&sums)[kTiles][4], float factor0, float factor1) {
#pragma unroll
  for (auto& t : sums) {
    t[0] *= factor0;
    t[1] *= factor0;
    t[2] *= factor1;
    t[3] *= factor1;
  }
}

// In registers, by each warp that holds all scores of its 16 heads: two of them in a lane.
struct WarpSoftmax {
  float m[2] = {kNoMaximum, kNoMaximum};
  float l[4] = {0, 0, 0, 0};  // of a product with ones: l[0] and l[2] are the sums

  // `s`: scores in units of log2, 4 tiles of 16 heads x 8 rows, -inf where there is no row. Returns
  // the weights as operands of two m16n8k16; rescales `sums` when a maximum was raised.
  template <int kTiles>
  __device__ __forceinline__ void step(const float (&s)[4][4], float (&sums)[kTiles][4],
                                       uint32_t (&p)[2][4]) {
    float x[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      x[r] = fmaxf(s[0][2 * r], s[0][2 * r + 1]);
#pragma unroll
      for (int i = 1; i < 4; ++i) x[r] = fmaxf(x[r], fmaxf(s[i][2 * r], s[i][2 * r + 1]));
    }
    // Mostly no lane sees a score that high, and the maximum over lanes is not needed.
    if (__any_sync(~0u, x[0] > m[0] + kMaxSlack || x[1] > m[1] + kMaxSlack)) {
#pragma unroll
      for (int lanes = 1; lanes < 4; lanes *= 2) {
        x[0] = fmaxf(x[0], __shfl_xor_sync(~0u, x[0], lanes));
        x[1] = fmaxf(x[1], __shfl_xor_sync(~0u, x[1], lanes));
      }
      const float factor0 = raise_maximum(&m[0], x[0]), factor1 = raise_maximum(&m[1], x[1]);
      l[0] *= factor0;
      l[2] *= factor1;
      rescale(sums, factor0, factor1);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      p[i >> 1][(i & 1) * 2] =
          pack_bf16x2(exp2_approx(s[i][0] - m[0]), exp2_approx(s[i][1] - m[0]));
      p[i >> 1][(i & 1) * 2 + 1] =
          pack_bf16x2(exp2_approx(s[i][2] - m[1]), exp2_approx(s[i][3] - m[1]));
    }
    mma_m16n8k16_f32_bf16_bf16_f32(l, p[0], kOnes, kOnes);
    mma_m16n8k16_f32_bf16_bf16_f32(l, p[1], kOnes, kOnes);
  }
};

// Through shared memory, for blocks whose warps share heads: warp w computes heads w, w + 8, ...,
// lane i row i of the tile.
template <class Shape, class Smem>
struct BlockSoftmax {
  static constexpr int kOwned = Shape::kHeads / kWarps;
  static constexpr int kWeightSetElements = Shape::kHeads * kWeightStride;

  uint8_t* shared;
  int lane = static_cast<int>(threadIdx.x) % 32;
  int warp = static_cast<int>(threadIdx.x) / 32;
  float m[kOwned], l[kOwned];  // l: this lane's rows only, until finish()

  __device__ float* scores(int depth_group) const {
    return reinterpret_cast<float*>(shared + Smem::kScoresOffset) +
           depth_group * Shape::kHeads * kScoreStride;
  }
  __device__ __nv_bfloat16* weights(int set) const {
    return reinterpret_cast<__nv_bfloat16*>(shared + Smem::kWeightsOffset) +
           set * kWeightSetElements;
  }
  __device__ float* factors() const {
    return reinterpret_cast<float*>(shared + Smem::kFactorsOffset);
  }
  // Heads that the model does not have keep weights of zero.
  __device__ void start() {
#pragma unroll
    for (int j = 0; j < kOwned; ++j) {
      m[j] = kNoMaximum;
      l[j] = 0;
      const int head = j * kWarps + warp;
      for (int set = 0; set < Smem::kWeightSets; ++set) {
        weights(set)[head * kWeightStride + lane] = __float2bfloat16(0);
      }
      if (lane == 0) factors()[head] = 1;
    }
  }

  // Partial scores of the lane's two heads, by the warp that computed them.
  __device__ void send(const float (&s)[Shape::kScoreTiles][4], int head_group, int depth_group,
                       int row_group) const {
    float* to = scores(depth_group) + (head_group * 16 + lane / 4) * kScoreStride + row_group * 16 +
                (lane & 3) * 2;
#pragma unroll
    for (int i = 0; i < Shape::kScoreTiles; ++i) {
      *reinterpret_cast<float2*>(to + i * 8) = make_float2(s[i][0], s[i][1]);
      *reinterpret_cast<float2*>(to + 8 * kScoreStride + i * 8) = make_float2(s[i][2], s[i][3]);
    }
  }

  // Where the weight of a tile's row stands among the columns of an operand. Fragments of codes are
  // made of rows c, c + 4, c + 8 and c + 12: those four stand where a lane's columns are.
  __device__ static int position(int row) {
    if (!Smem::kCodes) return row;
    return (row & 16) + (row & 3) * 2 + ((row >> 2) & 1) + ((row >> 3) & 1) * 8;
  }

  // Between two barriers: after all have sent, before any reads weights and factors. `mask` and
  // `scales`: of the lane's row, scales for each set of weights.
  __device__ void step(int heads, float scale_log2, float mask, const float* scales = nullptr) {
    const int at = position(lane);
#pragma unroll
    for (int j = 0; j < kOwned; ++j) {
      const int head = j * kWarps + warp;
      if (head >= heads) continue;
      float score = scores(0)[head * kScoreStride + lane];
#pragma unroll
      for (int g = 1; g < Shape::kDepthGroups; ++g) score += scores(g)[head * kScoreStride + lane];
      score = fmaf(score, scale_log2, mask);
      float factor = 1;
      if (__any_sync(~0u, score > m[j] + kMaxSlack)) {
        float x = score;
#pragma unroll
        for (int lanes = 16; lanes > 0; lanes /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, lanes));
        factor = raise_maximum(&m[j], x);
      }
      if (lane == 0) factors()[head] = factor;
      const float weight = exp2_approx(score - m[j]);
      if constexpr (Smem::kCodes) {
        l[j] = l[j] * factor + weight;
#pragma unroll
        for (int set = 0; set < Smem::kWeightSets; ++set) {
          weights(set)[head * kWeightStride + at] = __float2bfloat16(weight * scales[set]);
        }
      } else {
        const __nv_bfloat16 rounded = __float2bfloat16(weight);
        l[j] = l[j] * factor + __bfloat162float(rounded);
        weights(0)[head * kWeightStride + at] = rounded;
      }
    }
  }

  // The weights of a head group as operands, and its sums rescaled.
  template <int kTiles>
  __device__ __forceinline__ void receive(int head_group, int set, float (&sums)[kTiles][4],
                                          uint32_t (&p)[2][4]) const {
    const float factor0 = factors()[head_group * 16 + lane / 4];
    const float factor1 = factors()[head_group * 16 + lane / 4 + 8];
    const uint32_t from = shared_address(
        weights(set) + (head_group * 16 + lane % 16) * kWeightStride + lane / 16 * 8);
    ldmatrix_x4(p[0], from);
    ldmatrix_x4(p[1], from + 32);
    if (__any_sync(~0u, factor0 != 1 || factor1 != 1)) rescale(sums, factor0, factor1);
  }

  // Leaves each head's sum and maximum where all warps find them: two floats behind one another.
  __device__ void finish() {
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kOwned; ++j) {
      for (int lanes = 16; lanes > 0; lanes /= 2) l[j] += __shfl_xor_sync(~0u, l[j], lanes);
      if (lane == 0) totals()[j * kWarps + warp] = make_float2(m[j], l[j]);
    }
    __syncthreads();
  }
  __device__ float2* totals() const { return reinterpret_cast<float2*>(scores(0)); }
};

}  // namespace topknot::attention::portable
