// The kernel for shapes that no tile is unrolled for: any latent and rope part of multiples of 8.
//
// One block computes 16 heads of one token over one part of its list, for up to 512 columns of the
// output; with more columns, more blocks compute the same scores. Rows go through registers into
// one tile of bf16, so a multiprocessor hides the wait for them by holding several blocks.
#include "attention/backends/portable/online_softmax.cuh"
#include "attention/backends/portable/row_formats.cuh"
#include "attention/backends/portable/work.cuh"

namespace topknot::attention::portable {
namespace {

using Shape = TileShape<1>;
using Smem = GenericSmem;

constexpr int kValuePairs = 4;  // of 16 columns, for each warp

// Columns c .. c + 7 of a row as bf16, c a multiple of 8: in one group of a scale, and in one of
// the latent and the rope part.
__device__ __forceinline__ uint4 load_bf16(const uint8_t* row, int c) {
  return __ldg(reinterpret_cast<const uint4*>(row) + c / 8);
}

__device__ __forceinline__ uint4 load_fp8_ds(const uint8_t* row, int c, int rank) {
  const int groups = (rank + 127) / 128;
  const auto* words = reinterpret_cast<const uint32_t*>(row);
  if (c >= rank) {
    const uint32_t* rope = words + rank / 4 + groups + (c - rank) / 2;
    return {__ldg(rope), __ldg(rope + 1), __ldg(rope + 2), __ldg(rope + 3)};
  }
  const float scale = __uint_as_float(__ldg(words + rank / 4 + c / 128)) * 256;
  const uint2 low = e4m3x4_to_bf16x4(__ldg(words + c / 4), scale);
  const uint2 high = e4m3x4_to_bf16x4(__ldg(words + c / 4 + 1), scale);
  return {low.x, low.y, high.x, high.y};
}

__device__ __forceinline__ uint4 load_q8_0(const uint8_t* row, int c) {
  const auto* block = reinterpret_cast<const uint16_t*>(row + c / 32 * 34);
  const float scale = __half2float(__ushort_as_half(__ldg(block)));
  const uint16_t* quants = block + 1 + c % 32 / 2;
  const uint32_t first = __ldg(quants) | static_cast<uint32_t>(__ldg(quants + 1)) << 16;
  const uint32_t second = __ldg(quants + 2) | static_cast<uint32_t>(__ldg(quants + 3)) << 16;
  const uint2 low = int8x4_to_bf16x4(first, scale), high = int8x4_to_bf16x4(second, scale);
  return {low.x, low.y, high.x, high.y};
}

template <RowFormat kFormat>
__device__ __forceinline__ uint4 load_columns(const uint8_t* row, int c, int rank) {
  if constexpr (kFormat == RowFormat::kBf16) {
    return load_bf16(row, c);
  } else if constexpr (kFormat == RowFormat::kFp8Ds) {
    return load_fp8_ds(row, c, rank);
  } else {
    return load_q8_0(row, c);
  }
}

struct Geometry {
  int width, padded, stride, value_column0;  // columns; bytes of a row in shared memory

  __device__ Geometry(const MlaKernelArgs& args, int value_block)
      : width(args.kv_lora_rank + args.qk_rope_head_dim),
        padded(generic_padded_width(width)),
        stride(generic_row_bytes(width)),
        value_column0(value_block * kGenericValueColumns) {}
};

// Zeros where there is no head, and behind the last column.
__device__ __forceinline__ void load_queries(const MlaKernelArgs& args, const Work& work,
                                             const Geometry& g, uint8_t* queries) {
  for (int i = threadIdx.x; i < 16 * g.padded / 8; i += kThreads) {
    const int head = i % 16, c = i / 16 * 8;
    uint4 v = {0, 0, 0, 0};
    if (work.head0 + head < args.heads && c < g.width) {
      const int64_t row = work.token * args.heads + work.head0 + head;
      v = load_bf16(static_cast<const uint8_t*>(args.q) + row * g.width * 2, c);
    }
    *reinterpret_cast<uint4*>(queries + head * g.stride + c * 2) = v;
  }
}

template <RowFormat kFormat>
__device__ __forceinline__ void load_tile(const MlaKernelArgs& args, const Work& work,
                                          const Geometry& g, int tile, uint8_t* rows, float* mask) {
  const int row = threadIdx.x / kThreadsPerRow, part = threadIdx.x % kThreadsPerRow;
  const int i = tile * kTileRows + row;
  const int page = i < work.count ? __ldg(page_of(args, work, i)) : -1;
  const uint8_t* from = row_at(args, page < 0 ? 0 : slot_of(args, page, i));
  if (part == 0) mask[row] = page < 0 ? -INFINITY : 0.0f;
#pragma unroll 4
  for (int c = part * 8; c < g.padded; c += kThreadsPerRow * 8) {
    uint4 v = {0, 0, 0, 0};
    if (page >= 0 && c < g.width) v = load_columns<kFormat>(from, c, args.kv_lora_rank);
    *reinterpret_cast<uint4*>(rows + row * g.stride + c * 2) = v;
  }
}

// Every fourth step of 16 columns, for 16 of the tile's rows.
__device__ __forceinline__ void multiply_keys(const Geometry& g, uint32_t queries, uint32_t keys,
                                              int depth_group, float (&s)[Shape::kScoreTiles][4]) {
#pragma unroll
  for (auto& tile : s) tile[0] = tile[1] = tile[2] = tile[3] = 0;
  for (int k = depth_group; k < g.padded / 16; k += Shape::kDepthGroups) {
    uint32_t a[4], b[4];
    ldmatrix_x4(a, queries + k * 32);
    ldmatrix_x4(b, keys + k * 32);
    mma_m16n8k16_f32_bf16_bf16_f32(s[0], a, b[0], b[1]);
    mma_m16n8k16_f32_bf16_bf16_f32(s[1], a, b[2], b[3]);
  }
}

// The sums of one head: two columns for each of the warp's tiles of 8.
__device__ __forceinline__ void store(const MlaKernelArgs& args, const Work& work, int head,
                                      int column0, const float (&o)[2 * kValuePairs][4], int r,
                                      float2 total, bool writes_lse) {
  if (head >= args.heads) return;
  const bool partial = args.splits > 1;
  const int64_t row =
      partial ? partial_row(args, work.token, work.split, head) : work.token * args.heads + head;
  if (writes_lse && partial) args.partial_lse[row] = log2_lse(total.x, total.y);
  if (writes_lse && !partial && args.lse) args.lse[row] = natural_lse(total.x, total.y);
  if (partial && total.y == 0) return;
  const float inverse = total.y != 0 ? 1 / total.y : 0;
#pragma unroll
  for (int i = 0; i < 2 * kValuePairs; ++i) {
    const int column = column0 + i / 2 * kWarps * 16 + i % 2 * 8;
    if (column >= args.kv_lora_rank) continue;
    const float a = o[i][2 * r] * inverse, b = o[i][2 * r + 1] * inverse;
    const int64_t at = row * args.kv_lora_rank + column;
    if (partial) {
      *reinterpret_cast<float2*>(args.partial_out + at) = make_float2(a, b);
    } else {
      *reinterpret_cast<uint32_t*>(static_cast<__nv_bfloat16*>(args.out) + at) = pack_bf16x2(a, b);
    }
  }
}

template <RowFormat kFormat>
__global__ void __launch_bounds__(kThreads, 2)
    generic_mla(const __grid_constant__ MlaKernelArgs args) {
  extern __shared__ __align__(128) uint8_t shared[];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int value_blocks = generic_value_blocks(args.kv_lora_rank);
  const int value_block = static_cast<int>(blockIdx.x % value_blocks);
  const Work work = Work::of(args, blockIdx.x / value_blocks, Shape::kHeads);
  const Geometry g(args, value_block);
  uint8_t* const queries = shared + Smem::kQueriesOffset;
  uint8_t* const rows = queries + 16 * g.stride;
  float* const mask = reinterpret_cast<float*>(shared + Smem::kMaskOffset);
  const int depth_group = warp % Shape::kDepthGroups, row_group = warp / Shape::kDepthGroups;
  const uint32_t a_at = shared_address(queries) + lane % 16 * g.stride + lane / 16 * 16;
  const uint32_t keys = shared_address(rows) +
                        (row_group * 16 + lane % 8 + lane / 16 * 8) * g.stride + lane / 8 % 2 * 16;
  // A warp's pairs of tiles are 8 pairs apart; those behind the last column are left out.
  const int column0 = g.value_column0 + warp * 16;
  const uint32_t values =
      shared_address(rows) + lane % 16 * g.stride + lane / 16 * 16 + column0 * 2;
  const int columns = min(args.kv_lora_rank, g.value_column0 + kGenericValueColumns);

  load_queries(args, work, g, queries);
  BlockSoftmax<Shape, Smem> softmax{shared};
  softmax.start();
  float o[2 * kValuePairs][4];
#pragma unroll
  for (auto& tile : o) tile[0] = tile[1] = tile[2] = tile[3] = 0;
  for (int tile = work.tile_begin; tile < work.tile_end; ++tile) {
    __syncthreads();
    load_tile<kFormat>(args, work, g, tile, rows, mask);
    __syncthreads();
    float s[Shape::kScoreTiles][4];
    multiply_keys(g, a_at, keys, depth_group, s);
    softmax.send(s, 0, depth_group, row_group);
    __syncthreads();
    softmax.step(args.heads - work.head0, args.sm_scale * 1.44269504088896341f, mask[lane]);
    __syncthreads();
    uint32_t p[2][4];
    softmax.receive(0, 0, o, p);
#pragma unroll
    for (int i = 0; i < kValuePairs; ++i) {
      if (column0 + i * kWarps * 16 >= columns) break;
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        uint32_t b[4];
        ldmatrix_x4_trans(b, values + k * 16 * g.stride + i * kWarps * 32);
        mma_m16n8k16_f32_bf16_bf16_f32(o[2 * i], p[k], b[0], b[1]);
        mma_m16n8k16_f32_bf16_bf16_f32(o[2 * i + 1], p[k], b[2], b[3]);
      }
    }
  }
  softmax.finish();
  const bool writes_lse = value_block == 0 && warp == 0 && lane % 4 == 0;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int head = lane / 4 + 8 * r;
    store(args, work, work.head0 + head, column0 + lane % 4 * 2, o, r, softmax.totals()[head],
          writes_lse);
  }
}

const void* function_of(RowFormat format) {
  switch (format) {
    case RowFormat::kBf16: return reinterpret_cast<const void*>(&generic_mla<RowFormat::kBf16>);
    case RowFormat::kFp8Ds: return reinterpret_cast<const void*>(&generic_mla<RowFormat::kFp8Ds>);
    case RowFormat::kQ8_0: return reinterpret_cast<const void*>(&generic_mla<RowFormat::kQ8_0>);
  }
  return nullptr;
}

}  // namespace

cudaError_t prepare_generic_mla(RowFormat format, int width, int* blocks_per_sm) {
  const void* function = function_of(format);
  const int bytes = generic_smem_bytes(width);
  // For every width: the limit is the kernel's, and another model's must not lower it.
  const cudaError_t status = cudaFuncSetAttribute(
      function, cudaFuncAttributeMaxDynamicSharedMemorySize, generic_smem_bytes(kGenericMaxWidth));
  if (status != cudaSuccess) return status;
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks_per_sm, function, kThreads,
                                                       static_cast<size_t>(bytes));
}

cudaError_t launch_generic_mla(RowFormat format, const MlaKernelArgs& args, cudaStream_t stream) {
  const int64_t blocks = tile_blocks(16, args) * generic_value_blocks(args.kv_lora_rank);
  if (blocks == 0) return cudaSuccess;
  const int bytes = generic_smem_bytes(args.kv_lora_rank + args.qk_rope_head_dim);
  void* arguments[] = {const_cast<MlaKernelArgs*>(&args)};
  return cudaLaunchKernel(function_of(format), dim3(static_cast<unsigned>(blocks)), dim3(kThreads),
                          arguments, static_cast<size_t>(bytes), stream);
}

}  // namespace topknot::attention::portable
