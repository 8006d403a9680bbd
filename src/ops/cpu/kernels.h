// The inner loops of CPU operations, compiled once for each instruction set and chosen at run time.
// Plain data and pointers only: the files behind this header are compiled with different -march
// options, so they must not instantiate anything that another file could share (the linker keeps
// one copy).
//
// Sums run over 16 lanes in steps of 16 elements and are folded 8-4-2-1 at the end, whatever the
// instruction set and however many rows are taken at once: the order depends on the length only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace topknot::ops {

struct Kernels {
  const char* name;  // "avx512", "avx2", "portable"

  // Decodes n elements (a multiple of the block) of a decoded type to fp32; equals
  // tensor::dequantize_row bit for bit.
  void (*decode_row)(tensor::DType type, const std::byte* blocks, int64_t n, float* out);

  // out[t * out_stride + r] = dot(w + r * w_stride, x + t * x_stride), n elements.
  void (*dot_tile)(const float* w, int64_t w_stride, int64_t rows, const float* x, int64_t x_stride,
                   int64_t tokens, int64_t n, float* out, int64_t out_stride);

  // out[h * out_stride + c] += sum over j of p[h * p_stride + j] * v[j * v_stride + c], in order of
  // j.
  void (*accumulate)(const float* p, int64_t p_stride, int64_t heads, const float* v,
                     int64_t v_stride, int64_t rows, int64_t width, float* out, int64_t out_stride);

  // out[r] = sum over h, in order, of w[h] * max(scores[h * stride + r], 0): the indexer's head
  // sum.
  void (*relu_weighted_sum)(const float* scores, int64_t stride, int64_t heads, const float* w,
                            int64_t rows, float* out);

  void (*bf16_to_f32)(const uint16_t* in, int64_t n, float* out);
  void (*silu_mul)(float* gate, const float* up, int64_t n);
};

// Those this processor can run, best first; never empty.
const std::vector<const Kernels*>& available_kernels();
// Names of all that were built, also those this processor lacks.
std::vector<std::string_view> built_kernels();
// Null when there is none of this name that can run here.
const Kernels* find_kernels(std::string_view name);

}  // namespace topknot::ops
