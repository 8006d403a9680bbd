#include "model/workspace.h"

#include <algorithm>

namespace topknot::model {

int64_t StepSizes::bytes() const {
  constexpr int64_t kElementBytes = 4;
  const int64_t residuals = has_experts ? 4 : 3;
  return kElementBytes * (residuals * residual + q_latent + q + kv + absorbed + attended + values +
                          2 * mlp + 2 * rope + visible + router_logits + 2 * experts + index_q +
                          index_k + index_weights + 2 * selection);
}

StepSizes step_sizes(const ModelConfig& c, bool sparse, const StepLimits& limits) {
  const int64_t t = limits.tokens;
  StepSizes sizes;
  sizes.residual = t * c.hidden;
  sizes.q_latent = t * c.q_lora_rank;
  // Holds the query latent before its norm, too.
  sizes.q = t * std::max(c.heads * c.qk_head_dim(), c.q_lora_rank);
  sizes.kv = t * c.latent_width();
  sizes.absorbed = t * c.heads * c.latent_width();
  // Holds the normed latent of new rows, too: one row of it is at least that wide.
  sizes.attended = t * c.heads * c.kv_lora_rank;
  sizes.values = t * c.heads * c.v_head_dim;
  sizes.mlp = t * std::max(c.dense_ffn, c.expert_ffn * c.shared_experts);
  sizes.rope = t * (c.rope.dim / 2);
  sizes.visible = t;
  if (c.router.experts > 0) {
    sizes.has_experts = true;
    sizes.router_logits = t * c.router.experts;
    sizes.experts = t * c.router.used;
  }
  if (sparse) {
    const IndexerConfig& indexer = *c.indexer;
    sizes.index_q = t * indexer.heads * indexer.head_dim;
    sizes.index_k = t * indexer.head_dim;
    sizes.index_weights = t * indexer.heads;
    sizes.selection = t * std::min(indexer.topk, limits.context);
  }
  return sizes;
}

ops::Ops::Limits operation_limits(const ModelConfig& c, int64_t tokens) {
  ops::Ops::Limits limits;
  limits.row_elements =
      std::max({c.hidden, c.q_lora_rank, c.heads * c.v_head_dim, c.dense_ffn, c.expert_ffn,
                c.expert_ffn * c.shared_experts, c.kv_lora_rank, c.qk_nope_head_dim});
  limits.tokens = tokens;
  limits.experts = c.router.experts;
  limits.experts_used = c.router.experts > 0 ? c.router.used : 0;
  limits.expert_width = c.expert_ffn;
  return limits;
}

}  // namespace topknot::model
