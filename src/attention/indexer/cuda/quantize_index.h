// Index keys and queries on their way to fp8: both are rotated by the orthonormal Walsh-Hadamard
// matrix of 128, which changes no dot product and spreads outliers, then rounded.
//   keys     e4m3 with one power-of-two scale, written as the 132-byte rows of index_scores.h:
//            amax is at least 1e-4, scale = 2^ceil(log2(amax / 448))
//   queries  f16 with a power-of-two scale that is multiplied into the head's weight. f16 holds
//            every e4m3 value and costs mma.sync of sm_80 nothing, so queries lose less than keys.
// A vector with NaN or infinity gets the scale NaN: its scores are NaN and never chosen first.
//
//   keys_in      bf16 [tokens, 128]         normed and rotated by position (RoPE of either kind)
//   slots        i32  [tokens]              slot mapping; -1 = not written
//   key_rows     132 bytes [slots]          see index_scores.h
//   queries_in   bf16 [tokens, heads, 128]
//   weights_in   f32  [tokens, heads]
//   queries_out  f16  [tokens, heads, 128]  may be queries_in
//   weights_out  f32  [tokens, heads]       may be weights_in
// Device memory, 16-byte aligned. Each launch enqueues on `stream` and returns the launch status.
// Source: DeepSeek-V3.2 (rotate_activation, ue8m0 scales); models.md section 4.3.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace topknot::attention {

struct QuantizeIndexKeysArgs {
  const uint16_t* keys_in;
  const int32_t* slots;
  std::byte* key_rows;
  int64_t tokens;
};
cudaError_t launch_quantize_index_keys(const QuantizeIndexKeysArgs& args, cudaStream_t stream);

struct QuantizeIndexQueriesArgs {
  const uint16_t* queries_in;
  const float* weights_in;
  uint16_t* queries_out;
  float* weights_out;
  int64_t vectors;  // tokens * heads
};
cudaError_t launch_quantize_index_queries(const QuantizeIndexQueriesArgs& args,
                                          cudaStream_t stream);

}  // namespace topknot::attention
