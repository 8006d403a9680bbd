// What a model to be made looks like: every hyper-parameter as a plain number. The names are those
// of the papers; gguf.md section 2 says which metadata key each becomes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "topknot/error.h"

namespace topknot::synth {

// Bounds on what may be asked for; above every model of the family.
inline constexpr int64_t kMaxLayers = 1024;
inline constexpr int64_t kMaxWidth = 1 << 20;
inline constexpr int64_t kMaxVocab = 1 << 20;
inline constexpr int64_t kMaxExperts = 4096;
inline constexpr int64_t kMaxContext = 1 << 30;
inline constexpr uint64_t kMaxShapeFileBytes = 1 << 20;

struct ModelShape {
  std::string architecture = "glm-dsa";  // or deepseek32, deepseek2
  std::string name = "random";
  std::string tokenizer;  // glm4, deepseek-v3, deepseek-llm, kimi-k2; empty: the architecture's

  int64_t layers = 4;  // main layers
  int64_t nextn = 0;   // MTP blocks behind them
  int64_t hidden = 256;
  int64_t vocab = 512;
  int64_t context = 202'752;

  int64_t heads = 4;
  int64_t q_lora = 128;  // 0: one direct query projection
  int64_t kv_lora = 512;
  int64_t qk_nope = 192;
  int64_t qk_rope = 64;
  int64_t v_head = 256;
  bool fused_kv_b = false;  // attn_kv_b and the old keys, as files of before the MLA split

  int64_t dense_ffn = 512;
  int64_t leading_dense = 1;
  int64_t experts = 8;  // 0: every layer is dense
  int64_t experts_used = 2;
  int64_t shared_experts = 1;
  int64_t expert_ffn = 256;
  int64_t expert_groups = 1;
  int64_t expert_groups_used = 1;
  std::string gating = "sigmoid";  // or softmax, which has no bias
  bool weights_norm = true;
  double weights_scale = 2.5;
  bool fused_gate_up = false;  // ffn_gate_up_exps

  double rms_eps = 1e-5;
  double rope_base = 1e6;
  double yarn_factor = 0;  // 0: no YaRN
  int64_t yarn_original_context = 4096;
  double yarn_beta_fast = 32;  // the keys are written when they differ from 32 and 1
  double yarn_beta_slow = 1;
  double yarn_mscale_all_dim = 1;

  int64_t index_topk = 256;  // 0: no indexer
  int64_t index_heads = 8;
  int64_t index_head_dim = 128;
  // Which main layers own an indexer: "all", "FREQUENCY,OFFSET" as in the models' configuration
  // ("4,3" is GLM-5.2), or one letter a layer, F full and S shared.
  std::string index_schedule = "all";
  bool index_types_key = true;    // written when the schedule is not "all"
  bool index_everywhere = false;  // tensors also in shared layers, as many published files

  bool tied_output = false;  // no output.weight

  int64_t blocks() const { return layers + nextn; }
  int64_t qk_head() const { return qk_nope + qk_rope; }
  bool has_experts(int64_t block) const { return experts > 0 && block >= leading_dense; }
};

// A small model of that architecture: the members' own values are glm-dsa's, the others have
// DeepSeek's heads, rotation and norms.
ModelShape default_shape(std::string_view architecture);

// Every member by name, for --hidden 2048 and {"hidden": 2048}.
struct ShapeField {
  using Member = std::variant<int64_t ModelShape::*, double ModelShape::*, bool ModelShape::*,
                              std::string ModelShape::*>;
  std::string_view name;  // with '_'
  Member member;
  std::string_view help;
};
std::span<const ShapeField> shape_fields();

// kNotFound, with near names, or kInvalidArgument when the value has the wrong form. '-' and '_'
// are the same in names. Ranges are check_shape()'s.
Status set_field(ModelShape* shape, std::string_view name, std::string_view value);

// A JSON object of such members.
Status read_shape(std::string_view json, std::string_view where, ModelShape* shape);

// One Error with everything that cannot be a model of its architecture.
Status check_shape(const ModelShape& shape);

// One entry for each main layer; only of shapes that check_shape() accepts.
std::vector<bool> full_index_layers(const ModelShape& shape);

// The tokenizer's pre-tokenizer name, with the architecture's default.
std::string_view tokenizer_name(const ModelShape& shape);

}  // namespace topknot::synth
