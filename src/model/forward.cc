#include "model/forward.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.h"
#include "base/try.h"
#include "kvcache/slot_map.h"
#include "tensor/dequantize.h"

namespace topknot::model {

using ops::Ops;

struct ForwardPass::Step {
  const Batch& batch;
  kvcache::Cache& cache;
  const Observer* observer;
  int64_t tokens;
  bool sparse;  // some query of the step sees more keys than it may attend

  void show(int64_t layer, std::string_view name, const std::vector<float>& data,
            int64_t width) const {
    if (observer != nullptr && observer->values) {
      observer->values(layer, name, data.data(), tokens, width);
    }
  }
};

namespace {

size_t count(int64_t a, int64_t b) { return static_cast<size_t>(a * b); }

}  // namespace

ForwardPass::ForwardPass(const ModelConfig& config, const Weights& weights,
                         const Executor& executor, const StepLimits& limits)
    : config_(config),
      weights_(weights),
      executor_(executor),
      limits_(limits),
      inv_freq_(inverse_frequencies(config.rope)) {
  const StepSizes sizes = step_sizes(config_, executor.indexer != nullptr, limits);
  const auto make = [](int64_t elements, auto*... buffers) {
    (buffers->resize(static_cast<size_t>(elements)), ...);
  };
  make(sizes.residual, &x_, &norm_, &sum_);
  make(sizes.q_latent, &q_latent_);
  make(sizes.q, &q_);
  make(sizes.kv, &kv_);
  make(sizes.absorbed, &absorbed_);
  make(sizes.attended, &attended_);
  make(sizes.values, &values_);
  make(sizes.mlp, &gate_, &up_);
  make(sizes.rope, &cosines_, &sines_);
  make(sizes.visible, &visible_);
  make(sizes.has_experts ? sizes.residual : 0, &shared_);
  make(sizes.router_logits, &router_logits_);
  make(sizes.experts, &expert_ids_, &expert_weights_);
  make(sizes.index_q, &index_q_);
  make(sizes.index_k, &index_k_);
  make(sizes.index_weights, &index_weights_);
  make(sizes.selection, &positions_, &slots_);
  if (executor.indexer != nullptr) topk_ = std::min(config_.indexer->topk, limits.context);
  executor_.ops->reserve(operation_limits(config_, limits.tokens));
}

int64_t ForwardPass::workspace_bytes() const {
  size_t bytes = 0;
  for (const auto* v : {&x_, &norm_, &sum_, &q_latent_, &q_, &kv_, &absorbed_, &attended_, &values_,
                        &gate_, &up_, &shared_, &router_logits_, &expert_weights_, &index_q_,
                        &index_k_, &index_weights_, &cosines_, &sines_}) {
    bytes += v->size() * sizeof(float);
  }
  for (const auto* v : {&expert_ids_, &positions_, &slots_, &visible_})
    bytes += v->size() * sizeof(int32_t);
  return static_cast<int64_t>(bytes);
}

void ForwardPass::round(float* values, int64_t n) const {
  if (executor_.dtype != capability::ActivationType::kBf16) return;
  for (int64_t i = 0; i < n; ++i) values[i] = tensor::bf16_to_f32(tensor::f32_to_bf16(values[i]));
}

void ForwardPass::prepare_rope(const Batch& batch) {
  const size_t half = inv_freq_.size();
  for (size_t t = 0; t < batch.ids.size(); ++t) {
    for (size_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(batch.positions[t]) * inv_freq_[i];
      cosines_[t * half + i] = static_cast<float>(std::cos(angle));
      sines_[t * half + i] = static_cast<float>(std::sin(angle));
    }
  }
}

Result<StepStats> ForwardPass::run(const Batch& batch, kvcache::Cache* cache, float* hidden,
                                   const Observer* observer) {
  const auto tokens = static_cast<int64_t>(batch.ids.size());
  TOPKNOT_ASSERT(tokens <= limits_.tokens);
  StepStats stats{.queries = tokens};
  int32_t most_visible = 0;
  for (size_t t = 0; t < batch.ids.size(); ++t) {
    visible_[t] = batch.positions[t] + 1;
    TOPKNOT_ASSERT(visible_[t] <= limits_.context);
    most_visible = std::max(most_visible, visible_[t]);
    if (executor_.indexer != nullptr && visible_[t] > topk_) ++stats.sparse_queries;
  }
  const Step step{batch, *cache, observer, tokens, stats.sparse_queries > 0};
  TOPKNOT_CHECK_OK(executor_.attention->plan(
      {step.sparse ? attention::Selection::kSparse : attention::Selection::kDense, tokens, topk_,
       most_visible}));
  prepare_rope(batch);
  executor_.ops->embed(weights_.token_embd, batch.ids, x_.data());
  round(x_.data(), tokens * config_.hidden);
  step.show(-1, "embed", x_, config_.hidden);
  for (int64_t layer = 0; layer < config_.layers; ++layer) {
    TOPKNOT_CHECK_OK(attend(step, layer));
    feed_forward(step, layer);
    step.show(layer, "out", x_, config_.hidden);
  }
  for (size_t i = 0; i < batch.output_rows.size(); ++i) {
    const float* row = x_.data() + batch.output_rows[i] * config_.hidden;
    float* out = hidden + static_cast<int64_t>(i) * config_.hidden;
    executor_.ops->rms_norm(row, config_.hidden, weights_.output_norm.data(), 1, config_.hidden,
                            config_.rms_eps, out);
    round(out, config_.hidden);
  }
  return stats;
}

void ForwardPass::logits(const float* hidden, int64_t rows, float* out) {
  executor_.ops->linear(weights_.output, hidden, rows, out);
}

Status ForwardPass::attend(const Step& step, int64_t layer) {
  const ModelConfig& c = config_;
  const LayerWeights& w = weights_.layers[static_cast<size_t>(layer)];
  Ops& ops = *executor_.ops;
  ops.rms_norm(x_.data(), c.hidden, w.attn_norm.data(), step.tokens, c.hidden, c.rms_eps,
               norm_.data());
  round(norm_.data(), step.tokens * c.hidden);
  step.show(layer, "attn_norm", norm_, c.hidden);
  project_queries(step, layer);
  write_cache(step, layer);
  if (executor_.indexer != nullptr && c.has_own_indexer(layer)) select(step, layer);
  absorb_queries(step, layer);

  attention::MlaArgs args;
  args.q = absorbed_.data();
  args.kv = step.cache.latent_rows(static_cast<size_t>(layer));
  args.selection = step.sparse ? attention::Selection::kSparse : attention::Selection::kDense;
  args.sparse = {slots_.data(), topk_};
  args.dense = {step.batch.block_table.data(), step.batch.max_pages, step.batch.requests.data(),
                visible_.data()};
  args.tokens = step.tokens;
  args.sm_scale = c.softmax_scale;
  args.out = attended_.data();
  TOPKNOT_CHECK_OK(executor_.attention->run(args));

  round(attended_.data(), step.tokens * c.heads * c.kv_lora_rank);
  ops.linear_heads(w.v_b,
                   {attended_.data(), c.heads * c.kv_lora_rank, c.kv_lora_rank, values_.data(),
                    c.heads * c.v_head_dim, c.v_head_dim},
                   step.tokens);
  round(values_.data(), step.tokens * c.heads * c.v_head_dim);
  ops.linear(w.attn_out, values_.data(), step.tokens, sum_.data());
  step.show(layer, "attn_out", sum_, c.hidden);
  ops.add(x_.data(), sum_.data(), step.tokens * c.hidden);
  round(x_.data(), step.tokens * c.hidden);
  return {};
}

void ForwardPass::project_queries(const Step& step, int64_t layer) {
  const ModelConfig& c = config_;
  const LayerWeights& w = weights_.layers[static_cast<size_t>(layer)];
  Ops& ops = *executor_.ops;
  if (c.q_lora_rank > 0) {
    // norm_ stays as it is: the indexer and kv_a read it too. The projection is normed in place of
    // q_.
    ops.linear(w.q_a, norm_.data(), step.tokens, q_.data());
    ops.rms_norm(q_.data(), c.q_lora_rank, w.q_a_norm.data(), step.tokens, c.q_lora_rank, c.rms_eps,
                 q_latent_.data());
    round(q_latent_.data(), step.tokens * c.q_lora_rank);
    step.show(layer, "q_latent", q_latent_, c.q_lora_rank);
    ops.linear(w.q_b, q_latent_.data(), step.tokens, q_.data());
  } else {
    ops.linear(w.q, norm_.data(), step.tokens, q_.data());
  }
  // The main attention rotates the last P elements of each head.
  ops.rope({q_.data() + c.qk_nope_head_dim, step.tokens, c.heads, c.heads * c.qk_head_dim(),
            c.qk_head_dim(), c.rope.dim, c.rope.flavour, cosines_.data(), sines_.data()});
}

// The latent is normed, the shared rope key is not; both are cached after that, in one row.
void ForwardPass::write_cache(const Step& step, int64_t layer) {
  const ModelConfig& c = config_;
  const LayerWeights& w = weights_.layers[static_cast<size_t>(layer)];
  Ops& ops = *executor_.ops;
  const int64_t width = c.latent_width();
  ops.linear(w.kv_a, norm_.data(), step.tokens, kv_.data());
  // The attention output is computed later: its buffer holds the normed latent meanwhile.
  float* latent = attended_.data();
  ops.rms_norm(kv_.data(), width, w.kv_a_norm.data(), step.tokens, c.kv_lora_rank, c.rms_eps,
               latent);
  step.show(layer, "kv_latent", attended_, c.kv_lora_rank);
  ops.rope({kv_.data() + c.kv_lora_rank, step.tokens, 1, width, 0, c.rope.dim, c.rope.flavour,
            cosines_.data(), sines_.data()});
  const kvcache::CacheRows rows = step.cache.latent_rows(static_cast<size_t>(layer));
  for (int64_t t = 0; t < step.tokens; ++t) {
    std::copy_n(latent + t * c.kv_lora_rank, c.kv_lora_rank, kv_.data() + t * width);
    kvcache::write_row(rows, step.batch.slot_mapping[static_cast<size_t>(t)],
                       kv_.data() + t * width);
  }
}

// Writes this layer's index keys, always; scores and selects only when some query sees too many
// keys.
void ForwardPass::select(const Step& step, int64_t layer) {
  const IndexerConfig& indexer = *config_.indexer;
  const LayerWeights& w = weights_.layers[static_cast<size_t>(layer)];
  Ops& ops = *executor_.ops;
  const int64_t dim = indexer.head_dim;
  ops.linear(w.index_k, norm_.data(), step.tokens, index_k_.data());
  ops.layer_norm(index_k_.data(), w.index_k_norm.data(), w.index_k_norm_bias.data(), step.tokens,
                 dim, indexer.norm_eps, index_k_.data());
  // The indexer rotates the first elements of a vector, not the last.
  ops.rope({index_k_.data(), step.tokens, 1, dim, 0, indexer.rope_dim, indexer.rope_flavour,
            cosines_.data(), sines_.data()});
  const kvcache::CacheRows keys = step.cache.index_rows(static_cast<size_t>(layer));
  for (int64_t t = 0; t < step.tokens; ++t) {
    kvcache::write_row(keys, step.batch.slot_mapping[static_cast<size_t>(t)],
                       index_k_.data() + t * dim);
  }
  if (!step.sparse) return;

  ops.linear(w.index_q_b, q_latent_.data(), step.tokens, index_q_.data());
  ops.rope({index_q_.data(), step.tokens, indexer.heads, indexer.heads * dim, dim, indexer.rope_dim,
            indexer.rope_flavour, cosines_.data(), sines_.data()});
  ops.linear(w.index_weights, norm_.data(), step.tokens, index_weights_.data());
  const float scale = 1.0f / std::sqrt(static_cast<float>(indexer.heads) * static_cast<float>(dim));
  for (int64_t i = 0; i < step.tokens * indexer.heads; ++i)
    index_weights_[static_cast<size_t>(i)] *= scale;

  attention::IndexerArgs args;
  args.q = index_q_.data();
  args.weights = index_weights_.data();
  args.keys = keys;
  args.block_table = step.batch.block_table.data();
  args.max_pages = step.batch.max_pages;
  args.requests = step.batch.requests.data();
  args.visible = visible_.data();
  args.tokens = step.tokens;
  args.positions = positions_.data();
  if (step.observer != nullptr && step.observer->scores) {
    scores_.assign(count(step.tokens, limits_.context), std::numeric_limits<float>::quiet_NaN());
    args.scores = scores_.data();
    args.scores_stride = limits_.context;
  }
  executor_.indexer->run(args);
  if (args.scores != nullptr)
    step.observer->scores(layer, scores_.data(), step.tokens, limits_.context);
  if (step.observer != nullptr && step.observer->selection) {
    step.observer->selection(layer, positions_.data(), step.tokens, topk_);
  }
  const int64_t lost = kvcache::map_slots({positions_,
                                           step.batch.requests,
                                           step.batch.block_table,
                                           step.tokens,
                                           topk_,
                                           step.batch.max_pages,
                                           kvcache::kPageTokens,
                                           slots_,
                                           {}});
  TOPKNOT_ASSERT(lost == 0);
}

// q_abs[h] = W_UK[h]^T q_nope[h], with the rotated part behind it.
void ForwardPass::absorb_queries(const Step& step, int64_t layer) {
  const ModelConfig& c = config_;
  const LayerWeights& w = weights_.layers[static_cast<size_t>(layer)];
  const int64_t width = c.latent_width();
  round(q_.data(), step.tokens * c.heads * c.qk_head_dim());
  const Ops::HeadVectors vectors{q_.data(),        c.heads * c.qk_head_dim(), c.qk_head_dim(),
                                 absorbed_.data(), c.heads * width,           width};
  if (!w.k_b.empty()) {
    executor_.ops->linear_heads(w.k_b, vectors, step.tokens);
  } else {
    executor_.ops->linear_heads_transposed(w.k_b_rows, vectors, step.tokens);
  }
  for (int64_t i = 0; i < step.tokens * c.heads; ++i) {
    std::copy_n(q_.data() + i * c.qk_head_dim() + c.qk_nope_head_dim, c.qk_rope_head_dim,
                absorbed_.data() + i * width + c.kv_lora_rank);
  }
}

void ForwardPass::dense_mlp(const Weight& gate, const Weight& up, const Weight& down,
                            int64_t tokens, float* out) {
  Ops& ops = *executor_.ops;
  ops.linear(gate, norm_.data(), tokens, gate_.data());
  ops.linear(up, norm_.data(), tokens, up_.data());
  ops.silu_mul(gate_.data(), up_.data(), tokens * gate.out);
  round(gate_.data(), tokens * gate.out);
  ops.linear(down, gate_.data(), tokens, out);
}

void ForwardPass::feed_forward(const Step& step, int64_t layer) {
  const ModelConfig& c = config_;
  const LayerWeights& w = weights_.layers[static_cast<size_t>(layer)];
  Ops& ops = *executor_.ops;
  ops.rms_norm(x_.data(), c.hidden, w.ffn_norm.data(), step.tokens, c.hidden, c.rms_eps,
               norm_.data());
  // The router sees the norm before it is rounded: routing is fp32 whatever the activations are.
  if (c.is_moe_layer(layer)) {
    ops.linear(w.router, norm_.data(), step.tokens, router_logits_.data());
    ops.route(c.router, router_logits_.data(),
              w.router_bias.empty() ? nullptr : w.router_bias.data(), step.tokens,
              expert_ids_.data(), expert_weights_.data());
    if (step.observer != nullptr && step.observer->experts) {
      step.observer->experts(layer, expert_ids_.data(), expert_weights_.data(), step.tokens,
                             c.router.used);
    }
  }
  round(norm_.data(), step.tokens * c.hidden);
  step.show(layer, "ffn_norm", norm_, c.hidden);
  if (!c.is_moe_layer(layer)) {
    dense_mlp(w.ffn_gate, w.ffn_up, w.ffn_down, step.tokens, sum_.data());
  } else {
    ops.experts({w.gate_exps, w.up_exps, w.down_exps}, norm_.data(), expert_ids_.data(),
                expert_weights_.data(), c.router.used, step.tokens, sum_.data());
    if (c.shared_experts > 0) {  // not scaled, no gate
      dense_mlp(w.gate_shared, w.up_shared, w.down_shared, step.tokens, shared_.data());
      ops.add(sum_.data(), shared_.data(), step.tokens * c.hidden);
    }
  }
  step.show(layer, "ffn_out", sum_, c.hidden);
  ops.add(x_.data(), sum_.data(), step.tokens * c.hidden);
  round(x_.data(), step.tokens * c.hidden);
}

}  // namespace topknot::model
