// Multi-head latent attention in absorbed (MQA) form over cached latent rows: the contract of every
// backend.
//   out = softmax(q . row^T * sm_scale) . row[:R], over the selected rows of each token
//   H heads on this rank   R kv_lora_rank   P qk_rope_head_dim   D = R + P
// Source: DeepSeek-V2 (arXiv:2405.04434) section 2.1; DeepSeek-V3.2 (DSA). Oracle:
// backends/cpu_reference/.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
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

// Pointers are of the memory that the backend works on: the host's, or its GPU's, 16-byte aligned
// there. T is the backend's type of activations: f32 on the host, bf16 on a GPU.
struct MlaArgs {
  const void* q =
      nullptr;  // T [tokens, H, D]; first R already multiplied by W_UK, rope on the last P
  kvcache::CacheRows kv;  // one latent row per slot, shared by all heads
  Selection selection = Selection::kSparse;
  SparseRows sparse;  // for kSparse
  DenseRows dense;    // for kDense
  int64_t tokens = 0;
  float sm_scale = 0;   // 1/sqrt(qk_nope_head_dim + qk_rope_head_dim), times mscale^2 under YaRN
  void* out = nullptr;  // T [tokens, H, R]; zeros where nothing is selected
  float* lse =
      nullptr;  // f32 [tokens, H]; natural log; -inf where nothing is selected; may be null
  void* stream = nullptr;  // of a GPU backend: the cudaStream_t it enqueues on
};

// What a backend sizes its scratch for; run() allocates nothing.
struct MlaShape {
  int64_t heads = 0;
  int64_t kv_lora_rank = 0;
  int64_t qk_rope_head_dim = 0;
  int64_t width() const { return kv_lora_rank + qk_rope_head_dim; }
};

// The calls of one step, which differ in their rows only.
struct MlaBatch {
  Selection selection = Selection::kSparse;
  int64_t tokens = 0;
  int64_t topk = 0;         // sparse: the width of topk_slots
  int64_t max_visible = 0;  // dense: the most keys that a token reads, or an upper bound of it
};

// What backends run on. Not owned. A host backend needs the first two, a GPU backend the last.
struct Resources {
  ThreadPool* pool = nullptr;
  const ops::Kernels* kernels = nullptr;
  int cuda_device = 0;
};

class Attention {
 public:
  virtual ~Attention() = default;
  // Host work of a step, before its first run(): how a GPU divides the work, say.
  virtual Status plan(const MlaBatch& batch) = 0;
  // Computes on the host; on a GPU only enqueues, without allocation or synchronisation, so that it
  // can be captured in a graph. `args` must be of the planned batch.
  virtual Status run(const MlaArgs& args) = 0;
};

struct Backend {
  std::string name;
  std::string description;
  std::span<const Rule> rules;
  // Takes its scratch: kResource when memory runs out, whatever a device says otherwise.
  std::function<Result<std::unique_ptr<Attention>>(const MlaShape& shape,
                                                   const Resources& resources)>
      create;
  // Scratch that create() takes for so many host threads.
  std::function<int64_t(const MlaShape& shape, int threads)> workspace_bytes;
  // Element type T of queries and outputs.
  capability::ActivationType activations = capability::ActivationType::kF32;
  // Limits that are code, as those of a library are: asked beside the rules. May be empty.
  std::function<std::vector<capability::Refusal>(const Facts& asked)> limits = {};
};

// Every broken rule and limit.
std::vector<capability::Refusal> refusals(const Backend& backend, const Facts& asked);

}  // namespace topknot::attention
