// Multi-head latent attention in absorbed (MQA) form over cached latent rows: the contract of every
// backend.
//   out = softmax(q . row^T * sm_scale) . row[:R], over the selected rows of each token
//   H heads on this rank   R kv_lora_rank   P qk_rope_head_dim   D = R + P
// Source: DeepSeek-V2 (arXiv:2405.04434) section 2.1; DeepSeek-V3.2 (DSA). Oracle:
// backends/cpu_reference/.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "capability/rules.h"
#include "kvcache/cache.h"
#include "ops/cpu/kernels.h"

namespace topknot::attention {

using capability::Facts;
using capability::Rule;
using capability::Selection;

// Which rows of a token are read. Sparse: `topk_slots`. Dense: the first `visible` positions of its
// sequence, through the block table.
struct SparseRows {
  const int32_t* topk_slots =
      nullptr;  // i32 [tokens, topk]; physical slots; -1 = none, at any position
  int64_t topk = 0;
};
struct DenseRows {
  const int32_t* block_table = nullptr;  // i32 [requests, max_pages]
  int64_t max_pages = 0;
  const int32_t* requests = nullptr;  // i32 [tokens]: row of the block table
  const int32_t* visible = nullptr;   // i32 [tokens]: keys 0 .. visible-1 are read
};

struct MlaArgs {
  const float* q =
      nullptr;  // f32 [tokens, H, D]; first R already multiplied by W_UK, rope on the last P
  kvcache::CacheRows kv;  // one latent row per slot, shared by all heads
  Selection selection = Selection::kSparse;
  SparseRows sparse;  // for kSparse
  DenseRows dense;    // for kDense
  int64_t tokens = 0;
  float sm_scale = 0;    // 1/sqrt(qk_nope_head_dim + qk_rope_head_dim), times mscale^2 under YaRN
  float* out = nullptr;  // f32 [tokens, H, R]; zeros where nothing is selected
  float* lse =
      nullptr;  // f32 [tokens, H]; natural log; -inf where nothing is selected; may be null
};

// What a backend sizes its scratch for; run() allocates nothing.
struct MlaShape {
  int64_t heads = 0;
  int64_t kv_lora_rank = 0;
  int64_t qk_rope_head_dim = 0;
  int64_t width() const { return kv_lora_rank + qk_rope_head_dim; }
};

// What host backends run on. Not owned.
struct HostResources {
  ThreadPool* pool = nullptr;
  const ops::Kernels* kernels = nullptr;
};

class Attention {
 public:
  virtual ~Attention() = default;
  virtual void run(const MlaArgs& args) = 0;
};

struct Backend {
  std::string_view name;
  std::string_view description;
  std::span<const Rule> rules;
  std::unique_ptr<Attention> (*create)(const MlaShape& shape, const HostResources& host);
  // Scratch that create() takes for so many threads.
  int64_t (*workspace_bytes)(const MlaShape& shape, int threads);
};

}  // namespace topknot::attention
