#include "bench/cuda/random.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace topknot::bench {
namespace {

constexpr int kThreads = 256;
constexpr int kMaxBlocks = 4096;

int blocks_for(int64_t count) {
  const int64_t blocks = (count + kThreads - 1) / kThreads;
  return static_cast<int>(blocks < kMaxBlocks ? blocks : kMaxBlocks);
}

// A hash of the index: the finaliser of MurmurHash3 on both halves and the seed.
__device__ uint32_t hash(uint64_t index, uint32_t seed) {
  uint32_t h = static_cast<uint32_t>(index) * 0x9E3779B1u ^ static_cast<uint32_t>(index >> 32) ^
               seed * 0x85EBCA77u;
  h ^= h >> 16;
  h *= 0x85EBCA6Bu;
  h ^= h >> 13;
  h *= 0xC2B2AE35u;
  return h ^ h >> 16;
}

// Box and Muller; the first of the pair.
__device__ float normal(uint64_t index, uint32_t seed) {
  const float u = (hash(2 * index, seed) + 1.0f) * 0x1p-32f;
  const float v = hash(2 * index + 1, seed) * 0x1p-32f;
  return sqrtf(-2 * __logf(u < 1 ? u : 1)) * __cosf(6.2831853f * v);
}

template <class Function>
__global__ void each(int64_t count, Function function) {
  const int64_t stride = int64_t{gridDim.x} * kThreads;
  for (int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count; i += stride) {
    function(i);
  }
}

template <class Function>
cudaError_t launch_each(int64_t count, cudaStream_t stream, Function function) {
  if (count == 0) return cudaSuccess;
  each<<<blocks_for(count), kThreads, 0, stream>>>(count, function);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_random_bf16(void* out, int64_t count, uint32_t seed, cudaStream_t stream) {
  auto* values = static_cast<__nv_bfloat16*>(out);
  return launch_each(count, stream, [=] __device__(int64_t i) {
    values[i] = __float2bfloat16(normal(static_cast<uint64_t>(i), seed));
  });
}

cudaError_t launch_random_f32(float* out, int64_t count, uint32_t seed, cudaStream_t stream) {
  return launch_each(count, stream, [=] __device__(int64_t i) {
    out[i] = normal(static_cast<uint64_t>(i), seed);
  });
}

cudaError_t launch_random_fp8_ds_rows(void* out, int64_t rows, uint32_t seed, cudaStream_t stream) {
  constexpr int64_t kRowBytes = 656, kElements = 512, kScales = 4, kTail = 64;
  auto* bytes = static_cast<unsigned char*>(out);
  return launch_each(rows * (kElements + kScales + kTail), stream, [=] __device__(int64_t i) {
    const int64_t row = i / (kElements + kScales + kTail);
    const int64_t at = i % (kElements + kScales + kTail);
    unsigned char* begin = bytes + row * kRowBytes;
    const float value = normal(static_cast<uint64_t>(i), seed);
    if (at < kElements) {
      begin[at] = __nv_cvt_float_to_fp8(value * 100, __NV_SATFINITE, __NV_E4M3);
    } else if (at < kElements + kScales) {
      reinterpret_cast<float*>(begin + kElements)[at - kElements] = 0.01f;
    } else {
      reinterpret_cast<__nv_bfloat16*>(begin + kElements + 4 * kScales)[at - kElements - kScales] =
          __float2bfloat16(value);
    }
  });
}

cudaError_t launch_random_q8_0_blocks(void* out, int64_t blocks, uint32_t seed,
                                      cudaStream_t stream) {
  constexpr int64_t kBlockBytes = 34, kQuants = 32;
  auto* bytes = static_cast<unsigned char*>(out);
  return launch_each(blocks * (kQuants + 1), stream, [=] __device__(int64_t i) {
    unsigned char* begin = bytes + i / (kQuants + 1) * kBlockBytes;
    const int64_t at = i % (kQuants + 1);
    if (at == kQuants) {
      *reinterpret_cast<__half*>(begin) = __float2half(1.0f / 64);
      return;
    }
    const int quant = static_cast<int>(hash(static_cast<uint64_t>(i), seed) % 255) - 127;
    begin[2 + at] = static_cast<unsigned char>(static_cast<signed char>(quant));
  });
}

}  // namespace topknot::bench
