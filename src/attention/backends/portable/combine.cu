// Sums the parts of a token's list that several blocks have computed.
#include "attention/backends/portable/work.cuh"

namespace topknot::attention::portable {
namespace {

constexpr int kColumns = 128;  // of a warp: a float4 for each lane
constexpr int kFewWarps = 4;   // each with columns of its own
constexpr int kManyWarps = 8;  // that share the parts of the same columns
constexpr int kManySplits = 12;

struct CombineArgs {
  const float* partial_out;
  const float* partial_lse;
  __nv_bfloat16* out;
  float* lse;
  uint32_t heads, rank, splits;
  uint32_t units;  // rows x blocks of columns
};

__device__ __forceinline__ float4 fma4(float w, float4 v, float4 sum) {
  return {fmaf(w, v.x, sum.x), fmaf(w, v.y, sum.y), fmaf(w, v.z, sum.z), fmaf(w, v.w, sum.w)};
}

// The largest partial lse of a row; 0 when all are -inf.
__device__ __forceinline__ float largest_lse(const float* lse, const CombineArgs& args, int lane) {
  float m = -INFINITY;
  for (int s = lane; s < args.splits; s += 32) {
    m = fmaxf(m, __ldg(lse + static_cast<int64_t>(s) * args.heads));
  }
#pragma unroll
  for (int lanes = 1; lanes < 32; lanes *= 2) m = fmaxf(m, __shfl_xor_sync(~0u, m, lanes));
  return m == -INFINITY ? 0 : m;
}

// The sum of parts `first`, `first` + step, ... of a unit: kColumns columns of one head of a token.
struct Unit {
  int64_t row;  // token * heads + head
  int column;   // of this lane
  const float* lse;
  const float* out;

  __device__ Unit(const CombineArgs& args, uint32_t unit, int lane) {
    // In 32 bits, which a grid fits: a 64-bit division is a call.
    const uint32_t column_blocks = (args.rank + kColumns - 1) / kColumns;
    const uint32_t head_of_token = unit / column_blocks, token = head_of_token / args.heads;
    row = head_of_token;
    column = static_cast<int>(unit - head_of_token * column_blocks) * kColumns + lane * 4;
    const int64_t first =
        static_cast<int64_t>(token) * args.splits * args.heads + head_of_token % args.heads;
    lse = args.partial_lse + first;
    out = args.partial_out + first * args.rank + column;
  }

  __device__ float4 sum(const CombineArgs& args, int first, int step, float m, float* total) const {
    float4 sum = {0, 0, 0, 0};
    if (column >= args.rank) return sum;
#pragma unroll 4
    for (int s = first; s < args.splits; s += step) {
      const int64_t position = static_cast<int64_t>(s) * args.heads;
      const float w = exp2_approx(__ldg(lse + position) - m);
      const auto* part = reinterpret_cast<const float4*>(out + position * args.rank);
      const float4 v = w > 0 ? __ldg(part) : float4{0, 0, 0, 0};  // an empty part is not written
      *total += w;
      sum = fma4(w, v, sum);
    }
    return sum;
  }

  __device__ void store(const CombineArgs& args, float4 sum, float m, float total) const {
    const float inverse = total != 0 ? 1 / total : 0;
    if (column < args.rank) {
      *reinterpret_cast<uint2*>(args.out + row * args.rank + column) = {
          pack_bf16x2(sum.x * inverse, sum.y * inverse),
          pack_bf16x2(sum.z * inverse, sum.w * inverse)};
    }
    if (column == 0 && args.lse) args.lse[row] = natural_lse(m, total);
  }
};

__global__ void __launch_bounds__(32 * kFewWarps)
    combine_few(const __grid_constant__ CombineArgs args) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t index = blockIdx.x * kFewWarps + warp;
  if (index >= args.units) return;
  const Unit unit(args, index, lane);
  float total = 0;
  const float m = largest_lse(unit.lse, args, lane);
  const float4 sum = unit.sum(args, 0, 1, m, &total);
  unit.store(args, sum, m, total);
}

// Sums of warps are added in their order, so results do not depend on timing.
__global__ void __launch_bounds__(32 * kManyWarps)
    combine_many(const __grid_constant__ CombineArgs args) {
  __shared__ float4 sums[kManyWarps][32];
  __shared__ float totals[kManyWarps][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const Unit unit(args, blockIdx.x, lane);
  float total = 0;
  const float m = largest_lse(unit.lse, args, lane);
  float4 sum = unit.sum(args, warp, kManyWarps, m, &total);
  sums[warp][lane] = sum;
  totals[warp][lane] = total;
  __syncthreads();
  if (warp != 0) return;
  for (int w = 1; w < kManyWarps; ++w) {
    sum = fma4(1, sums[w][lane], sum);
    total += totals[w][lane];
  }
  unit.store(args, sum, m, total);
}

}  // namespace

cudaError_t launch_combine(const MlaKernelArgs& args, cudaStream_t stream) {
  const int64_t units = args.tokens * args.heads * ((args.kv_lora_rank + kColumns - 1) / kColumns);
  const CombineArgs combined = {args.partial_out,
                                args.partial_lse,
                                static_cast<__nv_bfloat16*>(args.out),
                                args.lse,
                                static_cast<uint32_t>(args.heads),
                                static_cast<uint32_t>(args.kv_lora_rank),
                                static_cast<uint32_t>(args.splits),
                                static_cast<uint32_t>(units)};
  if (units == 0) return cudaSuccess;
  if (args.splits >= kManySplits) {
    combine_many<<<static_cast<unsigned>(units), 32 * kManyWarps, 0, stream>>>(combined);
  } else {
    const int64_t blocks = (units + kFewWarps - 1) / kFewWarps;
    combine_few<<<static_cast<unsigned>(blocks), 32 * kFewWarps, 0, stream>>>(combined);
  }
  return cudaGetLastError();
}

}  // namespace topknot::attention::portable
