// Scores of the DSA indexer on a GPU, one contract for three kernels:
//   I[t, j] = sum over h of weights[t, h] * relu(q[t, h] . key[slot(t, j)]),  j < visible[t];  fp32
//
//   H heads   d head_dim   slot(t, j) = block_table[requests[t], j / 64] * 64 + j % 64
//   q            bf16 [tokens, H, d]         with bf16 keys
//                f16  [tokens, H, 128]       with fp8 keys: what launch_quantize_index_queries
//                wrote
//   weights      f32  [tokens, H]            with H^-0.5 * d^-0.5, and the scale of an f16 q
//   key_rows     [slots, row_bytes]          one index key per slot, in one of
//                  bf16  [0, 2d) d x bf16
//                  fp8   [0, 128) 128 x e4m3 | [128, 132) f32 scale; rotated as q is
//   block_table  i32  [requests, max_pages]  pages of 64 slots; read only for visible positions
//   requests     i32  [tokens]               row of the block table
//   visible      i32  [tokens]               keys that the token sees
//   scores       f32  [tokens, scores_stride]  columns visible[t] .. are not touched
// A row with visible <= unscored_up_to is not touched: its selection takes every key. A NaN in a
// key or query makes the scores NaN that it enters, and no others.
//
// Device memory, row-major, innermost contiguous, 16-byte aligned (fp8 rows follow each other
// without padding, pages start aligned); H * d * 2 and scores_stride * 4 are multiples of 16. No
// output aliases an input. Each launch enqueues on `stream` and returns the launch status.
//
// A score is the same bit for bit whichever of the tuned kernels computes it and whatever shares
// the call: dots are summed by mma.sync along d in one order, heads in pairs, then four lanes.
// Source: DeepSeek-V3.2 (DSA); models.md section 4.2. Oracle: reference_indexer.cc.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "attention/indexer/cuda/limits.h"

namespace topknot::attention {

enum class IndexKeyFormat : int32_t { kBf16, kFp8 };

struct IndexScoresArgs {
  const uint16_t* q;
  const float* weights;
  const std::byte* key_rows;
  const int32_t* block_table;
  int64_t max_pages;
  const int32_t* requests;
  const int32_t* visible;
  float* scores;
  int64_t scores_stride;
  int64_t tokens;
  int64_t max_visible;  // no visible[t] is larger; sizes the grid of the last two
  int64_t unscored_up_to;
  int32_t heads;     // at least 1
  int32_t head_dim;  // a multiple of 16; 128 with fp8 keys
  IndexKeyFormat format;
};

// True for the shapes of the tuned kernels: 32 or 64 heads of 128.
bool index_scores_are_tuned(const IndexScoresArgs& args);

// Each query streams its own keys. For one or a few queries of each request.
cudaError_t launch_decode_index_scores(const IndexScoresArgs& args, cudaStream_t stream);
// Keys stay in registers while queries pass. For many consecutive queries of one request.
cudaError_t launch_prefill_index_scores(const IndexScoresArgs& args, cudaStream_t stream);
// Any number of heads and any head_dim that the contract allows; not tuned.
cudaError_t launch_generic_index_scores(const IndexScoresArgs& args, cudaStream_t stream);

}  // namespace topknot::attention
