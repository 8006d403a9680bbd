// The one forward pass of the family: written against Ops, an attention backend and an indexer.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "attention/attention.h"
#include "attention/indexer/indexer.h"
#include "capability/facts.h"
#include "kvcache/cache.h"
#include "model/batch.h"
#include "model/config.h"
#include "model/weights.h"
#include "model/workspace.h"
#include "ops/ops.h"

namespace topknot::model {

// Looks on while a step runs: tests against goldens, diagnosis. Arrays are valid during the call
// only.
struct Observer {
  // "embed" (layer -1), "attn_norm", "q_latent", "kv_latent" (normed, without the rope part),
  // "attn_out", "ffn_norm", "ffn_out", "out" (residual after the layer): f32 [rows, width]
  std::function<void(int64_t layer, std::string_view name, const float* data, int64_t rows,
                     int64_t width)>
      values;
  // Selected positions i32 [tokens, topk], -1 = none, of layers with their own indexer.
  std::function<void(int64_t layer, const int32_t* positions, int64_t tokens, int64_t topk)>
      selection;
  // Indexer scores f32 [tokens, stride]; rows that see no more than topk keys are NaN.
  std::function<void(int64_t layer, const float* scores, int64_t tokens, int64_t stride)> scores;
  // Chosen experts and their weights [tokens, used], best first.
  std::function<void(int64_t layer, const int32_t* ids, const float* weights, int64_t tokens,
                     int64_t used)>
      experts;
};

// What a step runs on; chosen by the plan. `indexer` is null when attention is dense.
struct Executor {
  ops::Ops* ops = nullptr;
  attention::Attention* attention = nullptr;
  attention::Indexer* indexer = nullptr;
  // Rounding of the residual stream and of what enters a matrix product; sums are fp32 either way.
  capability::ActivationType dtype = capability::ActivationType::kF32;
};

class ForwardPass {
 public:
  // `config`, `weights` and what `executor` points at must outlive the pass. All buffers are made
  // here.
  ForwardPass(const ModelConfig& config, const Weights& weights, const Executor& executor,
              const StepLimits& limits);

  // Writes the cache rows of every token, then `hidden`: f32 [output_rows, hidden], after the final
  // norm.
  Result<StepStats> run(const Batch& batch, kvcache::Cache* cache, float* hidden,
                        const Observer* observer = nullptr);

  // f32 [rows, vocab] from rows of run().
  void logits(const float* hidden, int64_t rows, float* out);

  // Scratch held, without the indexer's and the backend's own.
  int64_t workspace_bytes() const;

 private:
  struct Step;

  Status attend(const Step& step, int64_t layer);
  void project_queries(const Step& step, int64_t layer);
  void write_cache(const Step& step, int64_t layer);
  void select(const Step& step, int64_t layer);
  void absorb_queries(const Step& step, int64_t layer);
  void feed_forward(const Step& step, int64_t layer);
  void dense_mlp(const Weight& gate, const Weight& up, const Weight& down, int64_t tokens,
                 float* out);
  void prepare_rope(const Batch& batch);
  void round(float* values, int64_t n) const;

  const ModelConfig& config_;
  const Weights& weights_;
  Executor executor_;
  StepLimits limits_;
  int64_t topk_ = 0;  // width of a selection: index_topk, or the context when that is less
  std::vector<double> inv_freq_;

  std::vector<float> x_, norm_, sum_;                // [T, D]
  std::vector<float> q_latent_, q_, kv_, absorbed_;  // queries and new rows
  std::vector<float> attended_, values_;             // [T, H, R], [T, H * V]
  std::vector<float> gate_, up_, shared_;            // MLPs
  std::vector<float> router_logits_, expert_weights_;
  std::vector<int32_t> expert_ids_;
  std::vector<float> index_q_, index_k_, index_weights_;
  std::vector<int32_t> positions_, slots_;  // [T, topk]
  std::vector<int32_t> visible_;            // [T]
  std::vector<float> cosines_, sines_;      // [T, rope/2]
  std::vector<float> scores_;               // only when an observer asks
};

}  // namespace topknot::model
