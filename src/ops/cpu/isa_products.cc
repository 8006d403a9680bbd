// Dot products and accumulations over vectors of 16 floats, which are one, two or four registers.
// Compiled once per instruction set with -ffp-contract=fast: the compiler fuses the product with
// the sum where the processor can.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "ops/cpu/kernels.h"

#define TOPKNOT_CONCAT_(a, b) a##b
#define TOPKNOT_CONCAT(a, b) TOPKNOT_CONCAT_(a, b)

namespace topknot::ops {
namespace {

constexpr int64_t kLanes = 16;

// The lanes of one register. A vector type of all 16 would be simpler, but GCC 12 keeps one that is
// wider than a register in memory: with AVX2, 3 GFLOP/s instead of 47 for one token (AMD EPYC).
#if defined(__AVX512F__)
constexpr int64_t kPartLanes = 16;
#elif defined(__AVX2__)
constexpr int64_t kPartLanes = 8;
#else
constexpr int64_t kPartLanes = 4;
#endif
constexpr int64_t kParts = kLanes / kPartLanes;
typedef float Part __attribute__((vector_size(kPartLanes * 4), aligned(4), may_alias));

struct Lanes {
  Part part[kParts];
};

Lanes load(const float* at) {
  Lanes out;
  for (int64_t i = 0; i < kParts; ++i) {
    out.part[i] = *reinterpret_cast<const Part*>(at + i * kPartLanes);
  }
  return out;
}
void store(float* at, const Lanes& value) {
  for (int64_t i = 0; i < kParts; ++i) {
    *reinterpret_cast<Part*>(at + i * kPartLanes) = value.part[i];
  }
}

void add_product(const Lanes& a, const Lanes& b, Lanes* sum) {
  for (int64_t i = 0; i < kParts; ++i) sum->part[i] += a.part[i] * b.part[i];
}
void add_product(float a, const Lanes& b, Lanes* sum) {
  for (int64_t i = 0; i < kParts; ++i) sum->part[i] += a * b.part[i];
}

Lanes load_tail(const float* at, int64_t n) {
  float padded[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) padded[i] = at[i];
  return load(padded);
}

float fold(const Lanes& v) {
  float s[kLanes];
  store(s, v);
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t i = 0; i < width; ++i) s[i] += s[i + width];
  }
  return s[0];
}

// R rows of w times T vectors of x, all sums in registers.
template <int R, int T>
void dot_block(const float* w, int64_t w_stride, const float* x, int64_t x_stride, int64_t n,
               float* out, int64_t out_stride) {
  Lanes sum[R][T] = {};
  int64_t k = 0;
  for (; k + kLanes <= n; k += kLanes) {
    Lanes xs[T];
    for (int t = 0; t < T; ++t) xs[t] = load(x + t * x_stride + k);
    for (int r = 0; r < R; ++r) {
      const Lanes ws = load(w + r * w_stride + k);
      for (int t = 0; t < T; ++t) add_product(ws, xs[t], &sum[r][t]);
    }
  }
  if (k < n) {
    for (int r = 0; r < R; ++r) {
      const Lanes ws = load_tail(w + r * w_stride + k, n - k);
      for (int t = 0; t < T; ++t) {
        add_product(ws, load_tail(x + t * x_stride + k, n - k), &sum[r][t]);
      }
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int t = 0; t < T; ++t) out[t * out_stride + r] = fold(sum[r][t]);
  }
}

// Sums held in registers: 16 of 32 on AVX-512; 4 pairs of 16 on AVX2 beside the loads.
#if defined(__AVX512F__)
constexpr int kRowBlock = 4;
constexpr int kTokenBlock = 4;
#else
constexpr int kRowBlock = 2;
constexpr int kTokenBlock = 2;
#endif

template <int R>
void dot_rows(const float* w, int64_t w_stride, const float* x, int64_t x_stride, int64_t tokens,
              int64_t n, float* out, int64_t out_stride) {
  int64_t t = 0;
  for (; t + kTokenBlock <= tokens; t += kTokenBlock) {
    dot_block<R, kTokenBlock>(w, w_stride, x + t * x_stride, x_stride, n, out + t * out_stride,
                              out_stride);
  }
  for (; t < tokens; ++t) {
    dot_block<R, 1>(w, w_stride, x + t * x_stride, x_stride, n, out + t * out_stride, out_stride);
  }
}

void dot_tile(const float* w, int64_t w_stride, int64_t rows, const float* x, int64_t x_stride,
              int64_t tokens, int64_t n, float* out, int64_t out_stride) {
  int64_t r = 0;
  for (; r + kRowBlock <= rows; r += kRowBlock) {
    dot_rows<kRowBlock>(w + r * w_stride, w_stride, x, x_stride, tokens, n, out + r, out_stride);
  }
  for (; r < rows; ++r) {
    dot_rows<1>(w + r * w_stride, w_stride, x, x_stride, tokens, n, out + r, out_stride);
  }
}

// H heads times C vectors of columns stay in registers while all rows pass.
template <int H, int C>
void accumulate_block(const float* p, int64_t p_stride, const float* v, int64_t v_stride,
                      int64_t rows, float* out, int64_t out_stride) {
  Lanes sum[H][C];
  for (int h = 0; h < H; ++h) {
    for (int c = 0; c < C; ++c) sum[h][c] = load(out + h * out_stride + c * kLanes);
  }
  for (int64_t j = 0; j < rows; ++j) {
    Lanes row[C];
    for (int c = 0; c < C; ++c) row[c] = load(v + j * v_stride + c * kLanes);
    for (int h = 0; h < H; ++h) {
      const float factor = p[h * p_stride + j];
      for (int c = 0; c < C; ++c) add_product(factor, row[c], &sum[h][c]);
    }
  }
  for (int h = 0; h < H; ++h) {
    for (int c = 0; c < C; ++c) store(out + h * out_stride + c * kLanes, sum[h][c]);
  }
}

template <int H>
void accumulate_heads(const float* p, int64_t p_stride, const float* v, int64_t v_stride,
                      int64_t rows, int64_t width, float* out, int64_t out_stride) {
  constexpr int kColumns = kTokenBlock;
  int64_t c = 0;
  for (; c + kColumns * kLanes <= width; c += kColumns * kLanes) {
    accumulate_block<H, kColumns>(p, p_stride, v + c, v_stride, rows, out + c, out_stride);
  }
  for (; c + kLanes <= width; c += kLanes) {
    accumulate_block<H, 1>(p, p_stride, v + c, v_stride, rows, out + c, out_stride);
  }
  for (; c < width; ++c) {
    for (int h = 0; h < H; ++h) {
      float sum = out[h * out_stride + c];
      for (int64_t j = 0; j < rows; ++j) sum += p[h * p_stride + j] * v[j * v_stride + c];
      out[h * out_stride + c] = sum;
    }
  }
}

void accumulate(const float* p, int64_t p_stride, int64_t heads, const float* v, int64_t v_stride,
                int64_t rows, int64_t width, float* out, int64_t out_stride) {
  int64_t h = 0;
  for (; h + kRowBlock <= heads; h += kRowBlock) {
    accumulate_heads<kRowBlock>(p + h * p_stride, p_stride, v, v_stride, rows, width,
                                out + h * out_stride, out_stride);
  }
  for (; h < heads; ++h) {
    accumulate_heads<1>(p + h * p_stride, p_stride, v, v_stride, rows, width, out + h * out_stride,
                        out_stride);
  }
}

void relu_weighted_sum(const float* scores, int64_t stride, int64_t heads, const float* w,
                       int64_t rows, float* out) {
  for (int64_t r = 0; r < rows; ++r) out[r] = 0;
  for (int64_t h = 0; h < heads; ++h) {
    const float factor = w[h];
    const float* row = scores + h * stride;
    for (int64_t r = 0; r < rows; ++r) out[r] += factor * (row[r] > 0 ? row[r] : 0.0f);
  }
}

void bf16_to_f32(const uint16_t* in, int64_t n, float* out) {
  for (int64_t i = 0; i < n; ++i) {
    out[i] = __builtin_bit_cast(float, static_cast<uint32_t>(in[i]) << 16);
  }
}

void silu_mul(float* gate, const float* up, int64_t n) {
  for (int64_t i = 0; i < n; ++i) gate[i] = gate[i] / (1.0f + expf(-gate[i])) * up[i];
}

}  // namespace

void TOPKNOT_CONCAT(decode_row_, TOPKNOT_ISA)(tensor::DType type, const std::byte* in, int64_t n,
                                              float* out);

extern const Kernels TOPKNOT_CONCAT(kernels_, TOPKNOT_ISA);
const Kernels TOPKNOT_CONCAT(kernels_, TOPKNOT_ISA) = {
    .name = TOPKNOT_ISA_NAME,
    .decode_row = TOPKNOT_CONCAT(decode_row_, TOPKNOT_ISA),
    .dot_tile = dot_tile,
    .accumulate = accumulate,
    .relu_weighted_sum = relu_weighted_sum,
    .bf16_to_f32 = bf16_to_f32,
    .silu_mul = silu_mul,
};

}  // namespace topknot::ops
