// The DSA lightning indexer: scores every visible key for each query and keeps the top-k positions.
//   I[t, j] = sum over h of w[t, h] * relu(q[t, h] . k[j]),  j < visible[t];  fp32
// Source: DeepSeek-V3.2 (DSA), models.md section 4. Queries, keys and head weights come projected,
// normed, rotated and scaled. One selection serves all heads of the attention that follows.
//
// Workspace is bounded whatever the context: kMaxWorkspaceBytes. Rows that see no more than `topk`
// keys take them all and are not scored.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "attention/attention.h"
#include "kvcache/cache.h"

namespace topknot::attention {

inline constexpr int64_t kMaxIndexerWorkspaceBytes = int64_t{256} << 20;
// A context whose one row of scores takes half of that: what is chosen for the user stays below.
inline constexpr int64_t kMaxIndexerContext = kMaxIndexerWorkspaceBytes / 2 / 4;

struct IndexerShape {
  int64_t heads = 0;        // index_n_heads
  int64_t head_dim = 0;     // index_head_dim
  int64_t topk = 0;         // index_topk
  int64_t max_tokens = 0;   // of one call
  int64_t max_context = 0;  // keys of the longest row
};

struct IndexerArgs {
  const float* q = nullptr;              // f32 [tokens, heads, head_dim]
  const float* weights = nullptr;        // f32 [tokens, heads], with heads^-0.5 * head_dim^-0.5
  kvcache::CacheRows keys;               // one index key per slot
  const int32_t* block_table = nullptr;  // i32 [requests, max_pages]
  int64_t max_pages = 0;
  const int32_t* requests = nullptr;  // i32 [tokens]
  const int32_t* visible = nullptr;   // i32 [tokens]
  int64_t tokens = 0;
  int32_t* positions = nullptr;  // i32 [tokens, topk]: ascending, then -1
  // For tests and diagnosis; may be null: f32 [tokens, scores_stride], scored rows only.
  float* scores = nullptr;
  int64_t scores_stride = 0;
};

// What the host indexer holds beside its arguments; never more than the bound where the plan chose
// it.
int64_t indexer_workspace_bytes(const IndexerShape& shape, int threads);

class Indexer {
 public:
  virtual ~Indexer() = default;
  virtual void run(const IndexerArgs& args) = 0;
  virtual int64_t workspace_bytes() const = 0;
};

std::unique_ptr<Indexer> make_reference_indexer(const IndexerShape& shape);
std::unique_ptr<Indexer> make_cpu_indexer(const IndexerShape& shape, const Resources& host);

// Positions 0 .. visible-1, then -1: the selection of a row that sees no more than topk keys.
void select_all(int64_t visible, int64_t topk, int32_t* positions);

}  // namespace topknot::attention
