// What a model is, as numbers: read from GGUF metadata by one mapping for each architecture string.
// Everything that differs between models of the family is a run-time value here; nothing below this
// layer knows a model's name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gguf/model_file.h"
#include "ops/ops.h"
#include "topknot/error.h"

namespace topknot::model {

// Bounds on what a file may claim; far above every model of the family.
inline constexpr uint64_t kMaxLayers = 4096;
inline constexpr uint64_t kMaxWidth = 1 << 20;  // any row length
inline constexpr uint64_t kMaxVocab = 1 << 22;
inline constexpr uint64_t kMaxExperts = 1 << 16;
inline constexpr uint64_t kMaxContext = 1 << 30;

// Static YaRN (models.md 3.4). The attention factor on cosines and sines is 1 for the whole family.
struct Yarn {
  double factor = 1;
  double original_context = 0;
  double beta_fast = 32;
  double beta_slow = 1;
  double log_multiplier = 0;  // 0.1 * mscale_all_dim
};

struct RopeConfig {
  double freq_base = 10'000;
  int64_t dim = 0;
  ops::RopeFlavour flavour = ops::RopeFlavour::kInterleaved;
  std::optional<Yarn> yarn;
};

// The DSA indexer; absent in dense models.
struct IndexerConfig {
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t topk = 0;
  int64_t rope_dim = 0;  // rotated elements, the first of each vector
  ops::RopeFlavour rope_flavour = ops::RopeFlavour::kInterleaved;
  float norm_eps = 1e-6f;         // a LayerNorm with bias; no metadata key exists
  std::vector<bool> full_layers;  // of the main layers; others reuse the last selection
};

struct ModelConfig {
  std::string architecture;
  std::string name;
  int64_t layers = 0;        // main layers: block_count - nextn_layers
  int64_t nextn_layers = 0;  // MTP blocks behind them, not run
  int64_t hidden = 0;
  int64_t vocab = 0;
  int64_t context_length = 0;  // trained
  int64_t heads = 0;
  int64_t q_lora_rank = 0;  // 0: direct q projection
  int64_t kv_lora_rank = 0;
  int64_t qk_nope_head_dim = 0;
  int64_t qk_rope_head_dim = 0;
  int64_t v_head_dim = 0;
  int64_t dense_ffn = 0;
  int64_t leading_dense_layers = 0;
  int64_t expert_ffn = 0;
  int64_t shared_experts = 0;
  bool router_bias = false;  // exp_probs_b must be there
  ops::RouterSpec router;
  float rms_eps = 0;
  float softmax_scale = 0;
  RopeConfig rope;
  std::optional<IndexerConfig> indexer;
  std::string sparse_reason;       // the key that makes it sparse, or why it is dense
  std::vector<std::string> notes;  // defaults used for keys that are absent

  int64_t qk_head_dim() const { return qk_nope_head_dim + qk_rope_head_dim; }
  int64_t latent_width() const { return kv_lora_rank + qk_rope_head_dim; }
  bool is_moe_layer(int64_t layer) const {
    return router.experts > 0 && layer >= leading_dense_layers;
  }
  bool has_own_indexer(int64_t layer) const {
    return indexer && indexer->full_layers[static_cast<size_t>(layer)];
  }
};

// All missing and impossible keys are reported in one Error. An architecture that is recognised but
// not offered is refused by name.
Result<ModelConfig> read_config(const gguf::ModelFile& file);

// Inverse frequencies, dim/2 of them (models.md 3.4).
std::vector<double> inverse_frequencies(const RopeConfig& rope);

}  // namespace topknot::model
