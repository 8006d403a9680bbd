// What the score kernels share: mma.sync tiles of keys and heads in the registers of a warp, and
// the sum over heads. Everything is code of sm_80.
//
// Two freedoms keep shuffles and copies away. The order in which a dot product visits its 128
// dimensions is free as long as both operands agree on it: of a k-step s, lane (g, t) = (lane / 4,
// lane % 4) holds four adjacent dimensions, of which the first two stand for 2t, 2t + 1 of the
// instruction and the others for 2t + 8, 2t + 9. And a dot product is the same whether keys are the
// A or the B operand:
//   decode   keys are B (8 columns). Two registers of a k-step are adjacent, so 16 bytes of a row
//            are loaded straight into place. Heads are A, arranged once for each query.
//   prefill  heads are B, since they stream: 16 bytes of a query are copied straight into place.
//            Keys are A (16 rows), loaded once.
//
// The sum over heads is the same in both, bit for bit: head 8n + 2t + e is added in the order
// n = p, p + 2, ..; e = 0, 1 for each of 8 pairs (p, t); then over p, the low bit of t, its high
// bit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/indexer/cuda/index_scores.h"

namespace topknot::attention {

inline constexpr int kTunedHeadDim = 128;
inline constexpr int kKeySteps = kTunedHeadDim / 16;  // k-steps of a dot product
inline constexpr float kFp8AsHalfScale = 0x1p8f;      // e4m3_pair_as_half() is 2^-8 of the value

// d = a b + c
__device__ inline void mma_m16n8k16_f32_bf16_bf16_f32(float (&d)[4], const uint32_t (&a)[4],
                                                      const uint32_t (&b)[2], const float (&c)[4]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]),
        "f"(c[2]), "f"(c[3]));
}

__device__ inline void mma_m16n8k16_f32_f16_f16_f32(float (&d)[4], const uint32_t (&a)[4],
                                                    const uint32_t (&b)[2], const float (&c)[4]) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]),
        "f"(c[2]), "f"(c[3]));
}

// One k-step of a tile; the first starts from zero, which takes no register.
template <IndexKeyFormat kFormat>
__device__ inline void multiply_tile(float (&dots)[4], const uint32_t (&a)[4],
                                     const uint32_t (&b)[2], bool first = false) {
  const float c[4] = {first ? 0.0f : dots[0], first ? 0.0f : dots[1], first ? 0.0f : dots[2],
                      first ? 0.0f : dots[3]};
  if constexpr (kFormat == IndexKeyFormat::kBf16) {
    mma_m16n8k16_f32_bf16_bf16_f32(dots, a, b, c);
  } else {
    mma_m16n8k16_f32_f16_f16_f32(dots, a, b, c);
  }
}

// Unlike fmaxf it keeps NaN, as the oracle does.
__device__ inline float relu(float x) {
  float out;
  asm("max.NaN.f32 %0, %1, 0f00000000;" : "=f"(out) : "f"(x));
  return out;
}

// A key is read once by a block: it need not displace what stays in the first-level cache.
// Neighbours of its 32-byte sectors are wanted next: fetching 256 bytes at a time from memory is
// worth 7 to 10 % of the bandwidth (64 x 32K keys on an H200: 149 to 139 us).
__device__ inline uint4 load_once(const std::byte* from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}

__device__ inline void copy_async_16(void* shared, const void* global) {
  asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
               "l"(global)
               : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Returns when at most kPending of this thread's groups are still under way.
template <int kPending>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// Lane t's four dimensions of k-step s are dims_of(s, t) on: 8 adjacent ones for two steps.
//   bf16   a quad of lanes reads 64 contiguous bytes of a row
//   fp8    words 33 * g + 8t + s of a tile of 132-byte rows fall into 32 different banks
template <IndexKeyFormat kFormat>
__host__ __device__ constexpr int dims_of(int step, int t) {
  return kFormat == IndexKeyFormat::kBf16 ? step / 2 * 32 + t * 8 + step % 2 * 4
                                          : t * 32 + step * 4;
}

// Bytes kLow and kLow + 1 of `word`, e4m3, as two f16 that are exactly 2^-8 of them: sign, exponent
// and mantissa shift into place, subnormals included. (e4m3's NaN is not kept; the scale is NaN.)
template <int kLow>
__device__ inline uint32_t e4m3_pair_as_half(uint32_t word) {
  const uint32_t spread = __byte_perm(word, 0, kLow == 0 ? 0x1404 : 0x3424);
  return (spread & 0x8000'8000u) | ((spread >> 1) & 0x3F80'3F80u);
}

__device__ inline float fp8_key_scale(const std::byte* rows, int row) {
  return *reinterpret_cast<const float*>(rows + row * kFp8IndexRowBytes + kFp8IndexHeadDim) *
         kFp8AsHalfScale;
}

// Of two values that each lane has a part of: the sum over this lane and its partner, of the first
// where `bit` of the lane is 0, of the second where it is 1.
__device__ inline float add_across(float first, float second, int lane, int bit) {
  const bool high = (lane & bit) != 0;
  return (high ? second : first) + __shfl_xor_sync(0xFFFF'FFFFu, high ? first : second, bit);
}

}  // namespace topknot::attention
