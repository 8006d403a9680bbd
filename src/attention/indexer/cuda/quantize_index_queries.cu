// One warp rotates and rounds one head of a query.
#include <cuda_fp16.h>

#include "attention/indexer/cuda/hadamard.cuh"
#include "attention/indexer/cuda/quantize_index.h"

namespace topknot::attention {
namespace {

constexpr int kThreads = 128;
constexpr float kSmallestAmax = 1e-30f;  // keeps the scale of a zero vector a normal number

__global__ void __launch_bounds__(kThreads) quantize_index_queries(QuantizeIndexQueriesArgs args) {
  const int64_t vector = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
  if (vector >= args.vectors) return;
  const int lane = threadIdx.x % 32;
  const float4 x =
      rotate_by_hadamard(load_bf16_vector(args.queries_in + vector * kHadamardDim, lane), lane);
  const float amax = largest_magnitude(x);
  const bool finite = amax < INFINITY;
  const PowerOfTwo scale = power_of_two_above(fmaxf(finite ? amax : 1.0f, kSmallestAmax));
  const __half2 low = __floats2half2_rn(x.x * scale.reciprocal, x.y * scale.reciprocal);
  const __half2 high = __floats2half2_rn(x.z * scale.reciprocal, x.w * scale.reciprocal);
  uint2 out;
  out.x = *reinterpret_cast<const uint32_t*>(&low);
  out.y = *reinterpret_cast<const uint32_t*>(&high);
  reinterpret_cast<uint2*>(args.queries_out + vector * kHadamardDim)[lane] = out;
  if (lane == 0) args.weights_out[vector] = finite ? args.weights_in[vector] * scale.value : NAN;
}

}  // namespace

cudaError_t launch_quantize_index_queries(const QuantizeIndexQueriesArgs& args,
                                          cudaStream_t stream) {
  constexpr int64_t kEach = kThreads / 32;
  if (args.vectors == 0) return cudaSuccess;
  const int64_t blocks = (args.vectors + kEach - 1) / kEach;
  if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
  quantize_index_queries<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(args);
  return cudaGetLastError();
}

}  // namespace topknot::attention
