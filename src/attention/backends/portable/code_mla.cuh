// The kernel for up to 16 heads over fp8_ds rows: as the tiled kernel, but rows stay in shared
// memory as the 656 bytes they are, three tiles of them, and each fragment is made of e4m3 in
// registers. With so few heads every warp needs other fragments, so nothing is converted twice but
// as key and as value, and a tile is neither written back nor waited for.
//
// An e4m3 moved into place as bf16 is 2^-120 of its value. Queries carry 2^60 and weights 2^64 of
// that, so that no product is subnormal, and scores and outputs the rest. A row's scale of each 128
// columns is applied to the scores of those columns, and to the weights that multiply them.
#pragma once

#include "attention/backends/portable/tiled_mla.cuh"

namespace topknot::attention::portable {

struct CodeKernel {
  using Rows = Fp8DsCodes;
  using Shape = TileShape<1>;
  using Smem = TileSmem<RowFormat::kFp8Ds, 1>;
  static constexpr int kLatentSteps = kRank / 16 / Shape::kDepthGroups;  // then one of rope
  static_assert(kLatentSteps == 8 && Shape::kDepthSteps == 9);
  static constexpr int kScales = kRank;                   // offset in a row
  static constexpr int kRope = kRank + kScaleGroups * 4;  // offset in a row
  static constexpr uint32_t kTwoTo60 = 0x5d805d80;        // two bf16
};

// Two e4m3 in the upper bytes of two halves, whatever is in the lower ones.
__device__ __forceinline__ uint32_t codes_to_bf16x2(uint32_t v) {
  return (v & 0x80008000u) | ((v >> 4) & 0x07f007f0u);
}

// Bytes 0 and 2, and bytes 1 and 3, of four.
__device__ __forceinline__ uint32_t even_codes(uint32_t v) {
  return ((v << 8) & 0x80008000u) | ((v << 4) & 0x07f007f0u);
}
__device__ __forceinline__ uint32_t odd_codes(uint32_t v) { return codes_to_bf16x2(v); }

// Of 32 columns a lane multiplies 8 neighbouring ones, even ones and odd ones: two steps of 16.
__device__ __forceinline__ void load_queries_of_codes(const MlaKernelArgs& args, const Work& work,
                                                      const Place<CodeKernel::Shape>& place,
                                                      uint32_t (&q)[9][4]) {
  const int width = kRank + args.qk_rope_head_dim;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int head = place.head(work) + 8 * r;
    const auto* row =
        static_cast<const __nv_bfloat16*>(args.q) + (work.token * args.heads + head) * width;
#pragma unroll
    for (int block = 0; block < 4; ++block) {
      const int column = place.depth_group * 128 + block * 32 + (place.lane & 3) * 8;
      const uint4 v = head < args.heads ? load_global_u32x4(row + column) : uint4{0, 0, 0, 0};
      q[2 * block][r] = __byte_perm(v.x, v.y, 0x5410);
      q[2 * block][2 + r] = __byte_perm(v.x, v.y, 0x7632);
      q[2 * block + 1][r] = __byte_perm(v.z, v.w, 0x5410);
      q[2 * block + 1][2 + r] = __byte_perm(v.z, v.w, 0x7632);
    }
    const int column = kRank + place.depth_group * 16 + (place.lane & 3) * 4;
    const bool there = head < args.heads && column < width;
    const uint2 rope = there ? load_global_u32x2(row + column) : uint2{0, 0};
    q[8][r] = rope.x;
    q[8][2 + r] = rope.y;
  }
}

__device__ __forceinline__ void raise_queries(uint32_t (&q)[9][4]) {
#pragma unroll
  for (int k = 0; k < CodeKernel::kLatentSteps; ++k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) q[k][i] = scale_bf16x2(q[k][i], CodeKernel::kTwoTo60);
  }
}

// This warp's part of q . k^T: 16 rows, 128 columns of one scale and 16 of the rope part.
__device__ __forceinline__ void multiply_code_keys(const uint32_t (&q)[9][4],
                                                   const Place<CodeKernel::Shape>& place,
                                                   const uint8_t* tile, float (&s)[2][4]) {
  const uint8_t* first = tile + (place.row_group * 16 + place.lane / 4) * kCodeRowBytes;
  // Two sums for each 8 rows, so that four products are under way.
  float sums[2][2][4];
#pragma unroll
  for (auto& pair : sums) {
#pragma unroll
    for (auto& t : pair) t[0] = t[1] = t[2] = t[3] = 0;
  }
#pragma unroll
  for (int block = 0; block < 4; ++block) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const uint8_t* codes = first + n * 8 * kCodeRowBytes + place.depth_group * 128 +
                             (place.lane & 3) * 8 + block * 32;
      const uint2 v = *reinterpret_cast<const uint2*>(codes);
      mma_m16n8k16_f32_bf16_bf16_f32(sums[n][0], q[2 * block], even_codes(v.x), odd_codes(v.x));
      mma_m16n8k16_f32_bf16_bf16_f32(sums[n][1], q[2 * block + 1], even_codes(v.y), odd_codes(v.y));
    }
  }
  // A lane's scores are of two other rows than its keys.
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    const uint8_t* scales = tile + CodeKernel::kScales + place.depth_group * 4 +
                            (place.row_group * 16 + n * 8 + (place.lane & 3) * 2) * kCodeRowBytes;
    const float a = *reinterpret_cast<const float*>(scales);
    const float b = *reinterpret_cast<const float*>(scales + kCodeRowBytes);
    s[n][0] = (sums[n][0][0] + sums[n][1][0]) * 0x1p60f * a;
    s[n][1] = (sums[n][0][1] + sums[n][1][1]) * 0x1p60f * b;
    s[n][2] = (sums[n][0][2] + sums[n][1][2]) * 0x1p60f * a;
    s[n][3] = (sums[n][0][3] + sums[n][1][3]) * 0x1p60f * b;
    const uint8_t* row = first + n * 8 * kCodeRowBytes;
    const uint2 v = *reinterpret_cast<const uint2*>(row + CodeKernel::kRope +
                                                    place.depth_group * 32 + (place.lane & 3) * 8);
    mma_m16n8k16_f32_bf16_bf16_f32(s[n], q[8], v.x, v.y);
  }
}

// 64 columns, four neighbouring ones of each row to a lane: columns 4 j' + j of 32 are tile j. Rows
// stand as BlockSoftmax::position() has the weights.
__device__ __forceinline__ void accumulate_codes(const uint32_t (&p)[2][4],
                                                 const Place<CodeKernel::Shape>& place,
                                                 const uint8_t* tile, float (&o)[8][4]) {
  const uint8_t* codes =
      tile + (place.lane & 3) * kCodeRowBytes + place.value_group * 64 + place.lane / 4 * 4;
#pragma unroll
  for (int k = 0; k < 2; ++k) {
#pragma unroll
    for (int block = 0; block < 2; ++block) {
      uint32_t rows[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        rows[i] = *reinterpret_cast<const uint32_t*>(codes + (k * 16 + i * 4) * kCodeRowBytes +
                                                     block * 32);
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const uint32_t select = 0x4400 + 0x1111 * j;
        mma_m16n8k16_f32_bf16_bf16_f32(o[block * 4 + j], p[k],
                                       codes_to_bf16x2(__byte_perm(rows[0], rows[1], select)),
                                       codes_to_bf16x2(__byte_perm(rows[2], rows[3], select)));
      }
    }
  }
}

// Tile j of 32 columns has columns 8 c + j and 8 c + 4 + j in lane c: now in their order.
__device__ __forceinline__ void order_columns(float (&o)[8][4]) {
#pragma unroll
  for (int block = 0; block < 2; ++block) {
    float ordered[4][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int column = 2 * i + e % 2;  // of 8
        ordered[i][e] = o[block * 4 + column % 4][e / 2 * 2 + column / 4] * 0x1p56f;
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) o[block * 4 + i][e] = ordered[i][e];
    }
  }
}

__global__ void __launch_bounds__(kThreads, 2)
    code_mla(const __grid_constant__ MlaKernelArgs args) {
  using Kernel = CodeKernel;
  extern __shared__ __align__(128) uint8_t shared[];
  const Place<Kernel::Shape> place;
  const Work work = Work::of(args, block_index(), Kernel::Shape::kHeads);
  const Loader<Kernel::Rows> loader{
      args, work, shared, reinterpret_cast<float*>(shared + Kernel::Smem::kMaskOffset),
      reinterpret_cast<int32_t*>(shared + Kernel::Smem::kPagesOffset)};
  constexpr int kAhead = Loader<Kernel::Rows>::kAhead;
  int first_pages[kAhead];
#pragma unroll
  for (int i = 0; i < kAhead; ++i) first_pages[i] = loader.first_page(work.tile_begin + i);
  uint32_t q[9][4];
  load_queries_of_codes(args, work, place, q);
  loader.clear_padding();
#pragma unroll
  for (int i = 0; i < kAhead; ++i) loader.fetch(work.tile_begin + i, first_pages[i]);
  raise_queries(q);

  float o[8][4];
#pragma unroll
  for (auto& tile : o) tile[0] = tile[1] = tile[2] = tile[3] = 0;
  BlockSoftmax<Kernel::Shape, Kernel::Smem> softmax{shared};
  softmax.start();
  for (int tile = work.tile_begin; tile < work.tile_end; ++tile) {
    loader.wait(tile);
    const uint8_t* rows = shared + loader.tile_offset(tile);
    float s[2][4];
    multiply_code_keys(q, place, rows, s);
    softmax.send(s, 0, place.depth_group, place.row_group);
    loader.fetch_ahead(tile);
    const float4 scales =
        *reinterpret_cast<const float4*>(rows + place.lane * kCodeRowBytes + Kernel::kScales);
    const float raised[kScaleGroups] = {scales.x * 0x1p64f, scales.y * 0x1p64f, scales.z * 0x1p64f,
                                        scales.w * 0x1p64f};
    __syncthreads();
    softmax.step(args.heads - work.head0, args.sm_scale * 1.44269504088896341f,
                 loader.mask[(tile & (kRingTiles - 1)) * kTileRows + place.lane], raised);
    __syncthreads();
    uint32_t p[2][4];
    softmax.receive(0, place.value_group / 2, o, p);
    accumulate_codes(p, place, rows, o);
  }
  cp_async_wait<0>();
  softmax.finish();
  order_columns(o);
  const float2 a = softmax.totals()[place.lane / 4], b = softmax.totals()[place.lane / 4 + 8];
  float m[2] = {a.x, b.x}, l[2] = {a.y, b.y};
  finish<true>(args, place, o, m, l, reinterpret_cast<uint32_t*>(shared));
}

}  // namespace topknot::attention::portable
