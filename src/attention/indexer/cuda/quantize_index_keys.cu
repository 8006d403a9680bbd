// One warp rotates and rounds one key.
#include <cuda_fp8.h>

#include "attention/indexer/cuda/hadamard.cuh"
#include "attention/indexer/cuda/index_scores.h"
#include "attention/indexer/cuda/quantize_index.h"

namespace topknot::attention {
namespace {

constexpr int kThreads = 128;
constexpr float kLargestE4m3 = 448.0f;
constexpr float kSmallestAmax = 1e-4f;

__global__ void __launch_bounds__(kThreads) quantize_index_keys(QuantizeIndexKeysArgs args) {
  const int64_t token = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
  if (token >= args.tokens) return;
  const int64_t slot = args.slots[token];
  if (slot < 0) return;
  const int lane = threadIdx.x % 32;
  const float4 x =
      rotate_by_hadamard(load_bf16_vector(args.keys_in + token * kHadamardDim, lane), lane);
  const float amax = largest_magnitude(x);
  const bool finite = amax < INFINITY;
  const PowerOfTwo scale =
      power_of_two_above(fmaxf(finite ? amax : 1.0f, kSmallestAmax) / kLargestE4m3);
  const float4 y = make_float4(x.x * scale.reciprocal, x.y * scale.reciprocal,
                               x.z * scale.reciprocal, x.w * scale.reciprocal);
  const uint32_t low = __nv_cvt_float2_to_fp8x2(make_float2(y.x, y.y), __NV_SATFINITE, __NV_E4M3);
  const uint32_t high = __nv_cvt_float2_to_fp8x2(make_float2(y.z, y.w), __NV_SATFINITE, __NV_E4M3);
  std::byte* row = args.key_rows + slot * kFp8IndexRowBytes;
  reinterpret_cast<uint32_t*>(row)[lane] = low | high << 16;
  if (lane == 0) {
    *reinterpret_cast<float*>(row + kFp8IndexHeadDim) = finite ? scale.value : NAN;
  }
}

}  // namespace

cudaError_t launch_quantize_index_keys(const QuantizeIndexKeysArgs& args, cudaStream_t stream) {
  constexpr int64_t kEach = kThreads / 32;
  if (args.tokens == 0) return cudaSuccess;
  const int64_t blocks = (args.tokens + kEach - 1) / kEach;
  if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
  quantize_index_keys<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace topknot::attention
