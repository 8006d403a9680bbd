// Byte layouts of the quantised blocks this build decodes, little-endian, with no alignment: every
// member is bytes, so a struct can be copied from any address. `d`, `m`, `dmin` are fp16.
// lo(b) = b & 15, hi(b) = b >> 4. Grids and value tables: codebooks.h. Source: ggml's format
// definitions, written down in docs/spec/gguf.md section 5.
#pragma once

#include <cstdint>

namespace topknot::tensor {

// [0,2) d | [2,18) qs            j < 16:  y[j] = d (lo(qs[j]) - 8)    y[j + 16] = d (hi(qs[j]) - 8)
struct BlockQ4_0 {
  static constexpr int kElements = 32;
  uint8_t d[2];
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ4_0) == 18);

// [0,2) d | [2,4) m | [4,20) qs  j < 16:  y[j] = d lo(qs[j]) + m      y[j + 16] = d hi(qs[j]) + m
struct BlockQ4_1 {
  static constexpr int kElements = 32;
  uint8_t d[2];
  uint8_t m[2];
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ4_1) == 20);

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

// [0,2) d | [2,4) m | [4,8) u32 qh | [8,24) qs     as Q5_0 with + m instead of - 16 within d ( )
struct BlockQ5_1 {
  static constexpr int kElements = 32;
  uint8_t d[2];
  uint8_t m[2];
  uint8_t qh[4];
  uint8_t qs[16];
};
static_assert(sizeof(BlockQ5_1) == 24);

// [0,16) scales | [16,80) qs | [80,82) d | [82,84) dmin
// element i, half c = i / 128, quarter p = (i % 128) / 32, l = i % 32, s = scales[i / 16]:
//   y[i] = (d lo(s)) q - dmin hi(s), where q = (qs[32 c + l] >> 2p) & 3
struct BlockQ2_K {
  static constexpr int kElements = 256;
  uint8_t scales[16];
  uint8_t qs[64];
  uint8_t d[2];
  uint8_t dmin[2];
};
static_assert(sizeof(BlockQ2_K) == 84);

// [0,32) hmask | [32,96) qs | [96,108) scales | [108,110) d      c, p, l as in Q2_K:
//   y[i] = (d sc) (q - 4), where q = (qs[32 c + l] >> 2p) & 3 | (bit 4c + p of hmask[l]) << 2
// sc of the group i / 16 has six bits, see q3_k_scale().
struct BlockQ3_K {
  static constexpr int kElements = 256;
  uint8_t hmask[32];
  uint8_t qs[64];
  uint8_t scales[12];
  uint8_t d[2];
};
static_assert(sizeof(BlockQ3_K) == 110);

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

// [0,2) d | [2,18) qs            as Q4_0 with kIq4Values[q] instead of q - 8
struct BlockIQ4_NL {
  static constexpr int kElements = 32;
  uint8_t d[2];
  uint8_t qs[16];
};
static_assert(sizeof(BlockIQ4_NL) == 18);

// [0,2) d | [2,4) u16 scales_h | [4,8) scales_l | [8,136) qs      group j = i / 32, l = i % 32:
//   y[i] = (d (ls - 32)) kIq4Values[q], where q is lo (l < 16) or hi (else) of qs[16 j + l % 16]
//   and ls = nibble j of scales_l | (bits 2j and 2j + 1 of scales_h) << 4
struct BlockIQ4_XS {
  static constexpr int kElements = 256;
  uint8_t d[2];
  uint8_t scales_h[2];
  uint8_t scales_l[4];
  uint8_t qs[128];
};
static_assert(sizeof(BlockIQ4_XS) == 136);

// [0,1) e | [1,17) qs            as Q4_0 with 2^(e - 127) as d, and E2M1 (codebooks.h) instead of
// q - 8. e = 255 is 2^128, as in ggml, though the standard (OCP MX) makes it NaN.
struct BlockMXFP4 {
  static constexpr int kElements = 32;
  uint8_t e;
  uint8_t qs[16];
};
static_assert(sizeof(BlockMXFP4) == 17);

// [0,4) scale of each group of 16 as UE4M3, see ue4m3_to_f32() | [4,36) qs      k < 8:
//   y[16 g + k] = scale[g] E2M1[lo(qs[8 g + k])]       y[16 g + k + 8] = the same with hi
struct BlockNVFP4 {
  static constexpr int kElements = 64;
  uint8_t scale[4];
  uint8_t qs[32];
};
static_assert(sizeof(BlockNVFP4) == 36);

// In the formats with a grid, element i lies in group b = i / 32, eighth l = (i % 32) / 8 of it, at
// place j = i % 8; sgn(m, j) is -1 where bit j of m is set, else 1; KS = even_signs().

// [0,2) d | [2,66) qs      eight bytes in each group: four indices e, then u32 a
//   y[i] = (d (0.5 + (a >> 28)) / 4) kIq2XxsGrid[e[l]][j] sgn(KS(a >> 7l & 127), j)
struct BlockIQ2_XXS {
  static constexpr int kElements = 256;
  uint8_t d[2];
  uint8_t qs[64];
};
static_assert(sizeof(BlockIQ2_XXS) == 66);

// [0,2) d | [2,66) u16 qs[32] | [66,74) scales      w = qs[4 b + l], s = nibble l / 2 of scales[b]
//   y[i] = (d (0.5 + s) / 4) kIq2XsGrid[w & 511][j] sgn(KS(w >> 9), j)
struct BlockIQ2_XS {
  static constexpr int kElements = 256;
  uint8_t d[2];
  uint8_t qs[64];
  uint8_t scales[8];
};
static_assert(sizeof(BlockIQ2_XS) == 74);

// [0,2) d | [2,34) qs | [34,66) signs | [66,74) qh | [74,82) scales      s as in IQ2_XS
//   y[i] = (d (0.5 + s) / 4) kIq2SGrid[e][j] sgn(signs[4 b + l], j)
//   e = qs[4 b + l] | (qh[b] >> 2l & 3) << 8
struct BlockIQ2_S {
  static constexpr int kElements = 256;
  uint8_t d[2];
  uint8_t qs[32];
  uint8_t signs[32];
  uint8_t qh[8];
  uint8_t scales[8];
};
static_assert(sizeof(BlockIQ2_S) == 82);

// [0,2) d | [2,66) qs | [66,98) u32 a[8]      e = qs[8 b + 2 l + j / 4]
//   y[i] = (d (0.5 + (a[b] >> 28)) / 2) kIq3XxsGrid[e][j % 4] sgn(KS(a[b] >> 7l & 127), j)
struct BlockIQ3_XXS {
  static constexpr int kElements = 256;
  uint8_t d[2];
  uint8_t qs[64];
  uint8_t a[32];
};
static_assert(sizeof(BlockIQ3_XXS) == 98);

// [0,2) d | [2,66) qs | [66,74) qh | [74,106) signs | [106,110) scales      t = 2 l + j / 4
//   y[i] = (d (1 + 2 s)) kIq3SGrid[e][j % 4] sgn(signs[4 b + l], j)
//   e = qs[8 b + t] | (bit t of qh[b]) << 8, s = nibble b of scales
struct BlockIQ3_S {
  static constexpr int kElements = 256;
  uint8_t d[2];
  uint8_t qs[64];
  uint8_t qh[8];
  uint8_t signs[32];
  uint8_t scales[4];
};
static_assert(sizeof(BlockIQ3_S) == 110);

// [0,2) d | [2,34) qs | [34,50) u16 qh[8]
//   y[i] = (d (2 (qh[b] >> 12 & 7) + 1)) (kIq1Grid[e][j] + delta)
//   e = qs[4 b + l] | (qh[b] >> 3l & 7) << 8, delta = -1/8 where bit 15 of qh[b] is set, else 1/8
struct BlockIQ1_S {
  static constexpr int kElements = 256;
  uint8_t d[2];
  uint8_t qs[32];
  uint8_t qh[16];
};
static_assert(sizeof(BlockIQ1_S) == 50);

// [0,32) qs | [32,48) qh | [48,56) u16 sc[4]      h = nibble l % 2 of qh[2 b + l / 2]
//   y[i] = (d (2 s + 1)) (kIq1Grid[qs[4 b + l] | (h & 7) << 8][j] + delta)
//   delta = -1/8 where bit 3 of h is set, else 1/8; s = sc[b / 2] >> (6 (b % 2) + 3 (l / 2)) & 7
//   d is the fp16 of the four top nibbles of sc, that of sc[0] lowest
struct BlockIQ1_M {
  static constexpr int kElements = 256;
  uint8_t qs[32];
  uint8_t qh[16];
  uint8_t sc[8];
};
static_assert(sizeof(BlockIQ1_M) == 56);

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

// Group g (0 to 15) of the twelve packed bytes of Q3_K, -32 to 31: the low four bits lie in the
// first eight bytes as two rows of nibbles, the high two in the last four as four rows of pairs.
inline int q3_k_scale(const uint8_t (&scales)[12], int g) {
  const int low = g < 8 ? scales[g] & 15 : scales[g - 8] >> 4;
  const int high = scales[8 + g % 4] >> 2 * (g / 4) & 3;
  return (low | high << 4) - 32;
}

// Seven signs and the eighth that makes the number of minus signs even.
inline int even_signs(int seven) {
  return seven | (__builtin_popcount(static_cast<unsigned>(seven)) & 1) << 7;
}

}  // namespace topknot::tensor
