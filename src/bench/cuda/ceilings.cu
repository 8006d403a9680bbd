#include "bench/cuda/ceilings.h"

namespace topknot::bench {
namespace {

constexpr int kMmaThreads = 512;
constexpr int kChains = 8;  // independent sums hide the latency of one

__device__ void mma_m16n8k16_f32_bf16_bf16_f32(float (&c)[4], const unsigned (&a)[4],
                                               const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__global__ void __launch_bounds__(kMmaThreads) mma_only(int steps, float* sink) {
  float c[kChains][4] = {};
  // Pairs of bf16 near 1 that differ between threads: zeros would cost less power.
  unsigned a[4], b[2];
  for (unsigned i = 0; i < 4; ++i) a[i] = 0x3F803F80u ^ (threadIdx.x * 2654435761u >> 12) * (i + 1);
  for (unsigned i = 0; i < 2; ++i) b[i] = 0xBF803F80u ^ (threadIdx.x * 40503u + i & 0x007F007Fu);
  for (unsigned i = 0; i < 4; ++i) a[i] = a[i] & 0x007F007Fu | 0x3F803F80u;
  for (int step = 0; step < steps; ++step) {
#pragma unroll
    for (int k = 0; k < kChains; ++k) mma_m16n8k16_f32_bf16_bf16_f32(c[k], a, b);
  }
  float sum = 0;
  for (int k = 0; k < kChains; ++k) sum += c[k][0] + c[k][1] + c[k][2] + c[k][3];
  if (sum == 12345.678f) *sink = sum;
}

}  // namespace

cudaError_t launch_mma_only(int blocks, int steps, float* sink, cudaStream_t stream) {
  mma_only<<<blocks, kMmaThreads, 0, stream>>>(steps, sink);
  return cudaGetLastError();
}

}  // namespace topknot::bench
