// The tiled kernel: one block computes 16, 32 or 64 heads of one token over one part of its row
// list, 32 rows at a time.
//
// The scores of a tile are a product over 576 columns that several warps share: each contracts its
// part with queries it keeps in registers, and the partial scores are summed through shared memory.
// Every warp of a head group then has all scores, keeps the same running maximum, and multiplies
// the weights with its own columns of the rows. While a tile is computed the copies of the next one
// are in flight, and the index of the one after that.
#pragma once

#include "attention/backends/portable/online_softmax.cuh"
#include "attention/backends/portable/row_formats.cuh"
#include "attention/backends/portable/work.cuh"

namespace topknot::attention::portable {

// Brings tiles into shared memory, one row per kThreadsPerRow threads. Pages come the same way,
// kAhead tiles before their rows: in a register the wait for them was 30 % of the time (H200).
template <class Rows>
struct Loader {
  static constexpr int kAhead = Rows::kAhead;
  static constexpr int kStageBytes = kTileRows * Rows::kStagedRowBytes;

  const MlaKernelArgs& args;
  const Work& work;
  uint8_t* tiles;  // kStages tiles; when rows are converted, before them the one that is computed
  float* mask;     // [kRingTiles, kTileRows]: 0, or -inf where there is no row
  int32_t* pages;  // [kRingTiles, kTileRows]
  int row = static_cast<int>(threadIdx.x) / kThreadsPerRow;
  int part = static_cast<int>(threadIdx.x) % kThreadsPerRow;

  __device__ int stage_offset(int tile) const {
    return (Rows::kConverts ? kTileBytes : 0) +
           static_cast<int>(static_cast<unsigned>(tile) % Rows::kStages) * kStageBytes;
  }
  // Of the tile that is computed.
  __device__ int tile_offset(int tile) const { return Rows::kConverts ? 0 : stage_offset(tile); }
  __device__ uint8_t* staged_row(int tile) const {
    return tiles + stage_offset(tile) + row * Rows::kStagedRowBytes;
  }
  __device__ int rope_chunks() const { return args.qk_rope_head_dim / 8; }
  __device__ int ring(int tile) const { return (tile & (kRingTiles - 1)) * kTileRows + row; }

  // Behind a rope part narrower than kMaxRope the columns of converted rows stay zero; other rows
  // are fetched with zeros there.
  __device__ void clear_padding() const {
    if (!Rows::kConverts || part < rope_chunks()) return;
    uint8_t* tile_row = tiles + row * kTileRowBytes;
    *reinterpret_cast<uint4*>(tile_row + (kLatentChunks + part) * 16) = {0, 0, 0, 0};
  }

  __device__ int first_page(int tile) const {
    const int i = tile * kTileRows + row;
    return tile < work.tile_end && i < work.count ? __ldg(page_of(args, work, i)) : -1;
  }

  // The copies of the rows of `tile` and of the pages of a later one, as one group. Behind the last
  // tile the rows are zeros, which costs less than a branch here would.
  __device__ __forceinline__ void fetch(int tile, int page) const {
    const int i = tile * kTileRows + row;
    const bool present = tile < work.tile_end && i < work.count && page >= 0;
    const uint32_t slot = present ? slot_of(args, page, i) : 0;
    uint8_t* to = staged_row(tile);
    Rows::fetch(shared_address(to), to, {row_at(args, slot), present, part, rope_chunks()});
    if (part == 0) mask[ring(tile)] = present ? 0.0f : -INFINITY;
    const int later = i + kAhead * kTileRows;
    cp_async_4_if(part == 0, shared_address(pages + ring(tile + kAhead)),
                  page_of(args, work, later), later < work.count ? 4 : 0);
    cp_async_commit();
  }

  // Waits until all threads can read `tile`. Then nobody reads the tile before it any more.
  __device__ __forceinline__ void wait(int tile) const {
    cp_async_wait<kAhead - 1>();
    __syncthreads();
    if constexpr (Rows::kConverts) {
      const int page = pages[ring(tile + kAhead)];
      Rows::convert(staged_row(tile), tiles + row * kTileRowBytes, part, rope_chunks());
      __syncwarp();
      fetch(tile + kAhead, page);
      __syncthreads();
    }
  }
  // Starts the copies of a later tile, once a tile: after wait().
  __device__ __forceinline__ void fetch_ahead(int tile) const {
    if constexpr (!Rows::kConverts) fetch(tile + kAhead, pages[ring(tile + kAhead)]);
  }
};

// Which part of a tile's arithmetic a lane does.
template <class Shape>
struct Place {
  int lane = static_cast<int>(threadIdx.x) % 32;
  int warp = static_cast<int>(threadIdx.x) / 32;
  int head_group = warp / Shape::kWarpsPerGroup;
  int value_group = warp % Shape::kWarpsPerGroup;
  int depth_group = value_group % Shape::kDepthGroups;
  int row_group = value_group / Shape::kDepthGroups;

  // The first of the two heads that a lane holds; the other is 8 behind it.
  __device__ int head(const Work& work) const { return work.head0 + head_group * 16 + lane / 4; }
  // Keys are the rows as they lie: a fragment is 16 rows by 16 columns.
  __device__ uint32_t keys(uint32_t tile) const {
    return tile + (row_group * 16 + (lane & 7) + ((lane >> 4) & 1) * 8) * kTileRowBytes +
           ((lane >> 3) & 1) * 16 + depth_group * Shape::kDepthSteps * 32;
  }
  // Values are the same bytes, transposed on the way to registers.
  __device__ uint32_t values(uint32_t tile) const {
    return tile + ((lane & 7) + ((lane >> 3) & 1) * 8) * kTileRowBytes + ((lane >> 4) & 1) * 16 +
           value_group * Shape::kValueTiles * 16;
  }
};

// The queries of a lane's two heads, as operands of its part of the product.
template <class Shape>
__device__ __forceinline__ void load_queries(const MlaKernelArgs& args, const Work& work,
                                             const Place<Shape>& place,
                                             uint32_t (&q)[Shape::kDepthSteps][4]) {
  const int width = kRank + args.qk_rope_head_dim;
  const int head = place.head(work);
  const auto* row0 =
      static_cast<const __nv_bfloat16*>(args.q) + (work.token * args.heads + head) * width;
  const auto* row1 = row0 + 8 * width;
#pragma unroll
  for (int k = 0; k < Shape::kDepthSteps; ++k) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int column = (place.depth_group * Shape::kDepthSteps + k) * 16 + half * 8;
      const int at = column + (place.lane & 3) * 2;
      q[k][2 * half] = head < args.heads && column < width ? load_global_u32(row0 + at) : 0;
      q[k][2 * half + 1] = head + 8 < args.heads && column < width ? load_global_u32(row1 + at) : 0;
    }
  }
}

// This warp's part of q . k^T; each fragment is loaded kAhead steps before it is used.
template <class Shape, int kAhead>
__device__ __forceinline__ void multiply_keys(const uint32_t (&q)[Shape::kDepthSteps][4],
                                              uint32_t keys, float (&s)[Shape::kScoreTiles][4]) {
  constexpr int kPairs = Shape::kScoreTiles / 2;
  uint32_t b[kAhead + 1][kPairs][4];
  const auto load = [&](int k) {
#pragma unroll
    for (int n = 0; n < kPairs; ++n)
      ldmatrix_x4(b[k % (kAhead + 1)][n], keys + n * 16 * kTileRowBytes + k * 32);
  };
#pragma unroll
  for (auto& tile : s) tile[0] = tile[1] = tile[2] = tile[3] = 0;
#pragma unroll
  for (int k = 0; k < kAhead; ++k) load(k);
#pragma unroll
  for (int k = 0; k < Shape::kDepthSteps; ++k) {
    if (k + kAhead < Shape::kDepthSteps) load(k + kAhead);
#pragma unroll
    for (int n = 0; n < kPairs; ++n) {
      const auto& f = b[k % (kAhead + 1)][n];
      mma_m16n8k16_f32_bf16_bf16_f32(s[2 * n], q[k], f[0], f[1]);
      mma_m16n8k16_f32_bf16_bf16_f32(s[2 * n + 1], q[k], f[2], f[3]);
    }
  }
}

// Fragments of the values, kAhead steps before they are used; the first ones are loaded while the
// warp waits for scores. A sum is used again only after all others: no product waits for another.
template <class Shape, int kAhead>
struct ValueProduct {
  static constexpr int kPairs = Shape::kValueTiles / 2;
  static constexpr int kSteps = kTileRows / 16 * kPairs;
  uint32_t values;
  uint32_t v[kAhead + 1][4];

  __device__ __forceinline__ void load(int step) {
    ldmatrix_x4_trans(v[step % (kAhead + 1)],
                      values + step / kPairs * 16 * kTileRowBytes + step % kPairs * 32);
  }
  __device__ __forceinline__ void start() {
#pragma unroll
    for (int step = 0; step < kAhead; ++step) load(step);
  }
  __device__ __forceinline__ void accumulate(const uint32_t (&p)[2][4],
                                             float (&o)[Shape::kValueTiles][4]) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      if (step + kAhead < kSteps) load(step + kAhead);
      const auto& f = v[step % (kAhead + 1)];
      const int j = step % kPairs;
      mma_m16n8k16_f32_bf16_bf16_f32(o[2 * j], p[step / kPairs], f[0], f[1]);
      mma_m16n8k16_f32_bf16_bf16_f32(o[2 * j + 1], p[step / kPairs], f[2], f[3]);
    }
  }
};

// Partial scores of the two warps of a head group: each adds the other's to its own, a + b = b + a.
template <class Shape>
struct PairExchange {
  float4* own;
  const float4* other;

  __device__ PairExchange(uint8_t* scores, const Place<Shape>& place) {
    float4* all = reinterpret_cast<float4*>(scores) + place.lane;
    own = all + place.warp * 128;
    other = all + (place.warp ^ 1) * 128;
  }

  __device__ __forceinline__ void send(const float (&s)[4][4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) own[i * 32] = make_float4(s[i][0], s[i][1], s[i][2], s[i][3]);
  }
  __device__ __forceinline__ void add_received(float (&s)[4][4]) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float4 more = other[i * 32];
      s[i][0] += more.x;
      s[i][1] += more.y;
      s[i][2] += more.z;
      s[i][3] += more.w;
    }
  }
};

// Scales scores to log2 and takes out the rows that are not there.
__device__ __forceinline__ void scale_and_mask(float (&s)[4][4], float scale_log2,
                                               const float* mask) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 absent = *reinterpret_cast<const float2*>(mask + i * 8);
    s[i][0] = fmaf(s[i][0], scale_log2, absent.x);
    s[i][1] = fmaf(s[i][1], scale_log2, absent.y);
    s[i][2] = fmaf(s[i][2], scale_log2, absent.x);
    s[i][3] = fmaf(s[i][3], scale_log2, absent.y);
  }
}

// A lane's part of the output of one of its two heads, r = 0 or 1.
// Pairs of columns: one of each tile of 8, or kQuads: four neighbouring pairs of 32 columns.
template <class Shape, bool kQuads>
struct Output {
  const MlaKernelArgs& args;
  const Work work;
  const Place<Shape>& place;

  __device__ int head(int r) const { return place.head(work) + 8 * r; }
  __device__ int column(int i) const {
    const int first = place.value_group * Shape::kValueTiles * 8;
    return kQuads ? first + i / 4 * 32 + (place.lane & 3) * 8 + i % 4 * 2
                  : first + i * 8 + (place.lane & 3) * 2;
  }
  __device__ bool writes_lse() const { return place.value_group == 0 && (place.lane & 3) == 0; }

  __device__ void store(int r, const float (&o)[Shape::kValueTiles][4], float m, float l) const {
    if (head(r) >= args.heads) return;
    const int64_t row = work.token * args.heads + head(r);
    const float inverse = l != 0 ? 1 / l : 0;
    auto* out = static_cast<__nv_bfloat16*>(args.out) + row * kRank;
#pragma unroll
    for (int i = 0; i < Shape::kValueTiles; ++i) {
      *reinterpret_cast<uint32_t*>(out + column(i)) =
          pack_bf16x2(o[i][2 * r] * inverse, o[i][2 * r + 1] * inverse);
    }
    if (writes_lse() && args.lse) args.lse[row] = natural_lse(m, l);
  }

  // Of an empty part only that it is empty.
  __device__ void store_partial(int r, const float (&o)[Shape::kValueTiles][4], float m,
                                float l) const {
    if (head(r) >= args.heads) return;
    const int64_t row = partial_row(args, work.token, work.split, head(r));
    if (writes_lse()) args.partial_lse[row] = log2_lse(m, l);
    if (l == 0) return;
    const float inverse = 1 / l;
    float* out = args.partial_out + row * kRank;
#pragma unroll
    for (int i = 0; i < Shape::kValueTiles; ++i) {
      *reinterpret_cast<float2*>(out + column(i)) =
          make_float2(__fmul_rn(o[i][2 * r], inverse), __fmul_rn(o[i][2 * r + 1], inverse));
    }
  }

  // Adds what the other block of a pair has left. Whichever block does it, the bits are the same:
  // both parts are normalised, weighted and rounded before they are added.
  __device__ void add_other(int r, float (&o)[Shape::kValueTiles][4], float* m, float* l) const {
    if (head(r) >= args.heads) return;
    const int64_t row = partial_row(args, work.token, work.split ^ 1, head(r));
    const float other_lse = __ldcg(args.partial_lse + row);
    if (other_lse == -INFINITY) return;
    const float own_lse = log2_lse(*m, *l);
    const float largest = fmaxf(own_lse, other_lse);
    const float own = exp2_approx(own_lse - largest), other = exp2_approx(other_lse - largest);
    const float inverse = *l != 0 ? 1 / *l : 0;
    const float* part = args.partial_out + row * kRank;
    const auto add = [&](float sum, float other_value) {
      return __fadd_rn(__fmul_rn(__fmul_rn(sum, inverse), own), __fmul_rn(other_value, other));
    };
#pragma unroll
    for (int i = 0; i < Shape::kValueTiles; ++i) {
      const float2 v = __ldcg(reinterpret_cast<const float2*>(part + column(i)));
      o[i][2 * r] = add(o[i][2 * r], v.x);
      o[i][2 * r + 1] = add(o[i][2 * r + 1], v.y);
    }
    *m = largest;
    *l = own + other;
  }
};

// Leaves a block's sums where they belong; m and l: of the lane's two heads. `flag`: shared memory
// that nobody uses any more.
template <bool kQuads, class Shape>
__device__ __forceinline__ void finish(const MlaKernelArgs& args, const Place<Shape>& place,
                                       float (&o)[Shape::kValueTiles][4], float (&m)[2],
                                       float (&l)[2], uint32_t* flag) {
  // Anew, so that nothing of it is kept in registers while tiles are computed.
  const Output<Shape, kQuads> output{args, Work::of(args, block_index(), Shape::kHeads), place};
  if (args.splits > 1) {
    const bool paired = args.tickets != nullptr;
    const Pair pair(args, output.work, Shape::kHeads, flag);
    if (!paired || pair.is_first()) {
      output.store_partial(0, o, m[0], l[0]);
      output.store_partial(1, o, m[1], l[1]);
      if (paired) pair.leave();
      return;
    }
    pair.wait();
    output.add_other(0, o, &m[0], &l[0]);
    output.add_other(1, o, &m[1], &l[1]);
  }
  output.store(0, o, m[0], l[0]);
  output.store(1, o, m[1], l[1]);
}

template <class Rows, int kHeadGroups, int kKeyAhead, int kValueAhead, bool kFetchFirst>
__device__ __forceinline__ void tiled_mla_block(const MlaKernelArgs& args) {
  using Shape = TileShape<kHeadGroups>;
  using Smem = TileSmem<Rows::kFormat, kHeadGroups>;
  static_assert(!Smem::kCodes);
  extern __shared__ __align__(128) uint8_t shared[];
  const Place<Shape> place;
  const Work work = Work::of(args, block_index(), Shape::kHeads);
  const Loader<Rows> loader{args, work, shared,
                            reinterpret_cast<float*>(shared + Smem::kMaskOffset),
                            reinterpret_cast<int32_t*>(shared + Smem::kPagesOffset)};

  // The first pages are on their way while the queries are asked for, and they while rows are.
  int first_pages[Loader<Rows>::kAhead];
#pragma unroll
  for (int i = 0; i < Loader<Rows>::kAhead; ++i) {
    first_pages[i] = loader.first_page(work.tile_begin + i);
  }
  uint32_t q[Shape::kDepthSteps][4];
  load_queries<Shape>(args, work, place, q);
  loader.clear_padding();
#pragma unroll
  for (int i = 0; i < Loader<Rows>::kAhead; ++i) loader.fetch(work.tile_begin + i, first_pages[i]);

  float o[Shape::kValueTiles][4];
#pragma unroll
  for (auto& tile : o) tile[0] = tile[1] = tile[2] = tile[3] = 0;
  const float scale_log2 = args.sm_scale * 1.44269504088896341f;
  const uint32_t keys = place.keys(shared_address(shared));
  const uint32_t values = place.values(shared_address(shared));
  if constexpr (Shape::kSharedSoftmax) {
    BlockSoftmax<Shape, Smem> softmax{shared};
    softmax.start();
    for (int tile = work.tile_begin; tile < work.tile_end; ++tile) {
      loader.wait(tile);
      if (kFetchFirst) loader.fetch_ahead(tile);
      const uint32_t offset = loader.tile_offset(tile);
      float s[Shape::kScoreTiles][4];
      multiply_keys<Shape, kKeyAhead>(q, keys + offset, s);
      softmax.send(s, place.head_group, place.depth_group, place.row_group);
      if (!kFetchFirst) loader.fetch_ahead(tile);
      __syncthreads();
      softmax.step(args.heads - work.head0, scale_log2,
                   loader.mask[(tile & (kRingTiles - 1)) * kTileRows + place.lane]);
      ValueProduct<Shape, kValueAhead> product{values + offset};
      product.start();
      __syncthreads();
      uint32_t p[2][4];
      softmax.receive(place.head_group, 0, o, p);
      product.accumulate(p, o);
    }
    cp_async_wait<0>();
    softmax.finish();
    const float2 a = softmax.totals()[place.head_group * 16 + place.lane / 4];
    const float2 b = softmax.totals()[place.head_group * 16 + place.lane / 4 + 8];
    float m[2] = {a.x, b.x}, l[2] = {a.y, b.y};
    finish<false>(args, place, o, m, l, reinterpret_cast<uint32_t*>(shared));
  } else {
    WarpSoftmax softmax;
    const PairExchange<Shape> exchange(shared + Smem::kScoresOffset, place);
    for (int tile = work.tile_begin; tile < work.tile_end; ++tile) {
      loader.wait(tile);
      if (kFetchFirst) loader.fetch_ahead(tile);
      const uint32_t offset = loader.tile_offset(tile);
      float s[4][4];
      multiply_keys<Shape, kKeyAhead>(q, keys + offset, s);
      exchange.send(s);
      if (!kFetchFirst) loader.fetch_ahead(tile);
      ValueProduct<Shape, kValueAhead> product{values + offset};
      product.start();
      named_barrier(1 + place.head_group, Shape::kWarpsPerGroup * 32);
      exchange.add_received(s);
      scale_and_mask(s, scale_log2,
                     loader.mask + (tile & (kRingTiles - 1)) * kTileRows + (place.lane & 3) * 2);
      uint32_t p[2][4];
      softmax.step(s, o, p);
      product.accumulate(p, o);
    }
    cp_async_wait<0>();
    float l[2] = {softmax.l[0], softmax.l[2]};
    finish<false>(args, place, o, softmax.m, l, reinterpret_cast<uint32_t*>(shared));
  }
}

}  // namespace topknot::attention::portable
