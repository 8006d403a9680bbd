// The indexer on a GPU: scores and selection in slices of queries that fit a bounded workspace.
// The kernels are index_scores.h, quantize_index.h and top_k.h; the oracle is
// make_reference_indexer().
#pragma once

#include <cstdint>

#include "attention/indexer/indexer.h"
#include "device/cuda/gpu.h"
#include "kvcache/row.h"
#include "topknot/error.h"

namespace topknot::attention {

struct IndexScoresArgs;

// Device memory, 16-byte aligned. Keys are bf16 rows of any head_dim that is a multiple of 16, or
// fp8_ds rows of 128 that launch_quantize_index_keys wrote; queries are bf16 with both.
struct CudaIndexerArgs {
  const uint16_t* q = nullptr;           // bf16 [tokens, heads, head_dim]
  const float* weights = nullptr;        // f32 [tokens, heads], with heads^-0.5 * head_dim^-0.5
  kvcache::CacheRows keys;               // one index key per slot
  const int32_t* block_table = nullptr;  // i32 [requests, max_pages]; read for visible keys only
  int64_t max_pages = 0;
  const int32_t* requests = nullptr;  // i32 [tokens]
  const int32_t* visible = nullptr;   // i32 [tokens]
  int64_t tokens = 0;
  // For speed only, never for the result: how many requests the tokens belong to, tokens of one
  // following each other.
  int64_t request_count = 1;
  int64_t max_visible = 0;       // no token sees more; a captured graph is replayed below it
  int32_t* positions = nullptr;  // i32 [tokens, topk]: ascending, then -1
  // For tests and diagnosis; may be null: f32 [tokens, scores_stride], a multiple of 4; scored rows
  // only.
  float* scores = nullptr;
  int64_t scores_stride = 0;
};

// Device memory that create() takes: at most kMaxIndexerWorkspaceBytes up to kMaxIndexerContext.
int64_t cuda_indexer_workspace_bytes(const IndexerShape& shape, kvcache::KvFormat format);

class CudaIndexer {
 public:
  // kResource when the GPU lacks the memory. The workspace is cleared on `stream`, on which, or
  // behind which, all runs are.
  static Result<CudaIndexer> create(const IndexerShape& shape, kvcache::KvFormat format,
                                    const device::Stream& stream);

  int64_t workspace_bytes() const { return static_cast<int64_t>(workspace_.bytes()); }
  // Only enqueues: no allocation, no synchronisation; may be captured in a graph.
  Status run(const CudaIndexerArgs& args, const device::Stream& stream);

 private:
  // Where things are in the workspace, in bytes.
  struct Layout {
    int64_t split_rows = 0;  // of a slice that is selected by several blocks a row
    int64_t slice = 0;       // tokens that are scored at once
    int64_t stride = 0;      // of score rows, in floats
    int64_t scores = 0;
    int64_t q = 0;        // fp8 keys: queries rotated and rounded
    int64_t weights = 0;  // and the weights that take their scales
    int64_t bytes = 0;
  };
  static Layout layout(const IndexerShape& shape, kvcache::KvFormat format);
  friend int64_t cuda_indexer_workspace_bytes(const IndexerShape& shape, kvcache::KvFormat format);

  IndexScoresArgs slice_of(const CudaIndexerArgs& args, int64_t first, int64_t tokens) const;
  Status score(IndexScoresArgs scores, bool prefill, const device::Stream& stream) const;
  Status select(const CudaIndexerArgs& args, const IndexScoresArgs& scores, int64_t first,
                const device::Stream& stream) const;

  IndexerShape shape_;
  kvcache::KvFormat format_ = kvcache::KvFormat::kBf16;
  Layout layout_;
  device::DeviceBuffer workspace_;
};

}  // namespace topknot::attention
