// Byte layouts of the quantised blocks this build decodes, little-endian, with no alignment: every
// member is bytes, so a struct can be copied from any address. `d`, `m`, `dmin` are fp16.
// lo(b) = b & 15, hi(b) = b >> 4. Source: ggml's format definitions.
#pragma once

#include <cstdint>

namespace topknot::tensor {

// [0,2) d | [2,34) int8 q[32]                      y[j] = d q[j]
struct BlockQ8_0 {
  static constexpr int kElements = 32;
  uint8_t d[2];
  int8_t q[32];
};
static_assert(sizeof(BlockQ8_0) == 34);

// [0,2) d | [2,6) u32 qh | [6,22) qs               j < 16:
//   y[j]      = d ((lo(qs[j]) | bit j of qh << 4) - 16)
//   y[j + 16] = d ((hi(qs[j]) | bit j+16 of qh << 4) - 16)
struct BlockQ5_0 {
  static constexpr int kElements = 32;
  uint8_t d[2];
  uint8_t qh[4];
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ5_0) == 22);

// [0,2) d | [2,4) dmin | [4,16) scales | [16,144) qs      element i, group j = i / 32, l = i % 32:
//   y[i] = (d sc_j) q - dmin mn_j, where q is lo (j even) or hi (j odd) of qs[32 (j / 2) + l].
// sc_j and mn_j are six bits each, see q4_k_scale().
struct BlockQ4_K {
  static constexpr int kElements = 256;
  uint8_t d[2];
  uint8_t dmin[2];
  uint8_t scales[12];
  uint8_t qs[128];
};
static_assert(sizeof(BlockQ4_K) == 144);

// [0,2) d | [2,4) dmin | [4,16) scales | [16,48) qh | [48,176) qs      as Q4_K with a fifth bit:
//   q = nibble | (bit j of qh[l]) << 4
struct BlockQ5_K {
  static constexpr int kElements = 256;
  uint8_t d[2];
  uint8_t dmin[2];
  uint8_t scales[12];
  uint8_t qh[32];
  uint8_t qs[128];
};
static_assert(sizeof(BlockQ5_K) == 176);

// [0,128) ql | [128,192) qh | [192,208) int8 scales | [208,210) d
// element i, half c = i / 128, quarter p = (i % 128) / 32, l = i % 32:
//   low  = lo (p < 2) or hi (p >= 2) of ql[64 c + 32 (p & 1) + l]
//   high = (qh[32 c + l] >> 2p) & 3
//   y[i] = (d scales[i / 16]) ((low | high << 4) - 32)
struct BlockQ6_K {
  static constexpr int kElements = 256;
  uint8_t ql[128];
  uint8_t qh[64];
  int8_t scales[16];
  uint8_t d[2];
};
static_assert(sizeof(BlockQ6_K) == 210);

struct ScaleMin {
  int scale;
  int min;
};

// Group j (0 to 7) of the twelve packed bytes of Q4_K and Q5_K. Groups 0 to 3 use six bits of a
// byte; groups 4 to 7 take four bits from bytes 8 to 11 and two from the tops of the bytes before.
inline ScaleMin q4_k_scale(const uint8_t (&scales)[12], int j) {
  if (j < 4) return {scales[j] & 63, scales[j + 4] & 63};
  return {(scales[j + 4] & 15) | (scales[j - 4] >> 6) << 4, (scales[j + 4] >> 4) | (scales[j] >> 6)
                                                                                       << 4};
}

}  // namespace topknot::tensor
