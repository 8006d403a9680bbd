// Exact selection of the k largest scores of each row on a GPU; the contract of ../top_k.h:
//   positions  i32 [rows, k]   indices of the k largest of scores[r, 0 .. visible[r]), ascending,
//                              then -1. Equal scores: the lower index. NaN counts below -inf, and
//                              -0 equals +0. visible[r] <= k: all of them, scores not read.
//   scores     f32 [rows, scores_stride]   columns behind visible[r] are not read
//   visible    i32 [rows]
// Device memory, 16-byte aligned, scores_stride a multiple of 4; positions alias nothing. Each
// launch enqueues on `stream` and returns the launch status. Deterministic; the work is bounded
// by the length of the row whatever it holds. Oracle: select_top_k().
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "attention/indexer/cuda/limits.h"

namespace topknot::attention {

struct TopKArgs {
  const float* scores;
  int64_t scores_stride;
  const int32_t* visible;
  int32_t* positions;
  int64_t rows;
  int32_t k;  // at least 1
};

// One block for each row: for many rows, or short ones.
cudaError_t launch_row_top_k(const TopKArgs& args, cudaStream_t stream);

// Several blocks for each row: for a few long rows. A histogram of the leading bits finds a bound
// that few scores pass; the last block to arrive selects among those. A row where more than
// kSplitTopKListed pass, or more than kSplitTopKPartListed in one part (nearly equal scores), is
// selected by that block alone: exact, slower.
inline constexpr int kSplitTopKBins = 4096;    // leading 12 bits: sign, exponent, three of mantissa
inline constexpr int kSplitTopKListed = 8192;  // of one row
inline constexpr int kSplitTopKPartListed = 4096;
inline constexpr int kMaxSplitTopKParts = 64;  // blocks of one row

struct TopKCandidate {
  uint32_t key;  // orders as the scores do
  int32_t index;
};

// Memory of split selections of up to `max_rows` rows, 256-byte aligned. Its first
// split_top_k_zeroed_bytes() are zero before the first launch, and each launch leaves them zero
// again. Calls that share it are on one stream.
struct SplitTopKWorkspace {
  void* data;
  int64_t max_rows;
};
int64_t split_top_k_workspace_bytes(int64_t max_rows);
int64_t split_top_k_zeroed_bytes(int64_t max_rows);

// How the two kernels see it.
struct SplitTopKArgs {
  TopKArgs top_k;
  uint32_t* histogram;        // [rows, kSplitTopKBins]
  uint32_t* arrived;          // [rows]         blocks that have listed their part
  uint32_t* listed;           // [rows, parts]  candidates, also where the list has no room
  TopKCandidate* candidates;  // [rows, parts, kSplitTopKPartListed]  in the order of the row
  int32_t parts;              // 1 .. kMaxSplitTopKParts blocks for each row
};

// Enqueues the two kernels below. args.rows is at most max_rows.
cudaError_t launch_split_top_k(const TopKArgs& args, const SplitTopKWorkspace& workspace,
                               cudaStream_t stream);

cudaError_t launch_top_k_histogram(const SplitTopKArgs& args, cudaStream_t stream);
cudaError_t launch_top_k_gather(const SplitTopKArgs& args, cudaStream_t stream);

}  // namespace topknot::attention
