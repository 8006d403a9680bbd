// A vector of 128 in the registers of a warp: lane l holds dims 4l .. 4l + 3.
#pragma once

#include <cmath>
#include <cstdint>

namespace topknot::attention {

inline constexpr int kHadamardDim = 128;

__device__ inline float4 load_bf16_vector(const uint16_t* vector, int lane) {
  const uint2 raw = reinterpret_cast<const uint2*>(vector)[lane];
  return make_float4(__uint_as_float(raw.x << 16), __uint_as_float(raw.x & 0xFFFF'0000u),
                     __uint_as_float(raw.y << 16), __uint_as_float(raw.y & 0xFFFF'0000u));
}

// H x with H[i][j] = (-1)^popcount(i & j) / sqrt(128).
__device__ inline float4 rotate_by_hadamard(float4 x, int lane) {
  x = make_float4(x.x + x.y, x.x - x.y, x.z + x.w, x.z - x.w);
  x = make_float4(x.x + x.z, x.y + x.w, x.x - x.z, x.y - x.w);
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const float sign = (lane & step) != 0 ? -1.0f : 1.0f;
    x.x = fmaf(sign, x.x, __shfl_xor_sync(0xFFFF'FFFFu, x.x, step));
    x.y = fmaf(sign, x.y, __shfl_xor_sync(0xFFFF'FFFFu, x.y, step));
    x.z = fmaf(sign, x.z, __shfl_xor_sync(0xFFFF'FFFFu, x.z, step));
    x.w = fmaf(sign, x.w, __shfl_xor_sync(0xFFFF'FFFFu, x.w, step));
  }
  const float scale = 0.08838834764831845f;  // 128^-0.5
  return make_float4(x.x * scale, x.y * scale, x.z * scale, x.w * scale);
}

// The largest magnitude of the vector, in all lanes; infinity if any element is NaN or infinite.
__device__ inline float largest_magnitude(float4 x) {
  float largest = fmaxf(fmaxf(fabsf(x.x), fabsf(x.y)), fmaxf(fabsf(x.z), fabsf(x.w)));
  // The difference with itself is NaN for NaN and infinity, and 0 for all else.
  if ((x.x - x.x) + (x.y - x.y) + (x.z - x.z) + (x.w - x.w) != 0.0f) largest = INFINITY;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xFFFF'FFFFu, largest, step));
  }
  return largest;
}

// 2^ceil(log2(x)) for a normal x, and its reciprocal; both exact.
struct PowerOfTwo {
  float value;
  float reciprocal;
};
__device__ inline PowerOfTwo power_of_two_above(float x) {
  const uint32_t bits = __float_as_uint(x);
  const uint32_t exponent = (bits >> 23) + ((bits & 0x7F'FFFFu) != 0);
  return {__uint_as_float(exponent << 23), __uint_as_float((254 - exponent) << 23)};
}

}  // namespace topknot::attention
