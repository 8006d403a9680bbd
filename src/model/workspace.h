// The buffers of a step as numbers: what ForwardPass makes, and what a plan counts before it.
#pragma once

#include <cstdint>

#include "model/config.h"
#include "ops/ops.h"

namespace topknot::model {

struct StepLimits {
  int64_t tokens = 0;   // of one step
  int64_t context = 0;  // keys of the longest request
};

// Elements; all 4 bytes wide.
struct StepSizes {
  int64_t residual = 0;  // x, norm, sum, and shared where there are experts
  int64_t q_latent = 0, q = 0, kv = 0, absorbed = 0;
  int64_t attended = 0, values = 0;
  int64_t mlp = 0;   // gate, and up
  int64_t rope = 0;  // cosines, and sines
  int64_t visible = 0;
  int64_t router_logits = 0, experts = 0;  // chosen ids, and their weights
  int64_t index_q = 0, index_k = 0, index_weights = 0;
  int64_t selection = 0;  // positions, and slots
  bool has_experts = false;

  int64_t bytes() const;
};

// `sparse`: the indexer runs.
StepSizes step_sizes(const ModelConfig& config, bool sparse, const StepLimits& limits);

// What the operations of a step need of an implementation.
ops::Ops::Limits operation_limits(const ModelConfig& config, int64_t tokens);

}  // namespace topknot::model
