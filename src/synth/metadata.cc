#include "synth/metadata.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/strings.h"
#include "synth/vocabulary.h"

namespace topknot::synth {
namespace {

using tensor::DType;

struct FileType {
  DType type;
  uint32_t id;
};

// llama.cpp's numbers of files that are mostly of a type.
constexpr FileType kFileTypes[] = {
    {DType::kF32, 0},      {DType::kF16, 1},     {DType::kQ4_0, 2},     {DType::kQ4_1, 3},
    {DType::kQ8_0, 7},     {DType::kQ5_0, 8},    {DType::kQ5_1, 9},     {DType::kQ2_K, 10},
    {DType::kQ3_K, 12},    {DType::kQ4_K, 15},   {DType::kQ5_K, 17},    {DType::kQ6_K, 18},
    {DType::kIQ2_XXS, 19}, {DType::kIQ2_XS, 20}, {DType::kIQ3_XXS, 23}, {DType::kIQ1_S, 24},
    {DType::kIQ4_NL, 25},  {DType::kIQ3_S, 26},  {DType::kIQ2_S, 28},   {DType::kIQ4_XS, 30},
    {DType::kIQ1_M, 31},   {DType::kBF16, 32},   {DType::kMXFP4, 38},
};

// None when no number stands for the type.
std::optional<uint32_t> file_type(std::span<const TensorPlan> tensors) {
  std::map<DType, uint64_t> bytes;
  for (const TensorPlan& tensor : tensors) {
    bytes[tensor.spec.type] += gguf::tensor_bytes(tensor.spec);
  }
  const auto most = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == bytes.end()) return {};
  for (const FileType& each : kFileTypes) {
    if (each.type == most->first) return each.id;
  }
  return {};
}

class Keys {
 public:
  explicit Keys(const ModelShape& shape) : s_(shape) {}

  gguf::MetadataEncoder make(std::span<const TensorPlan> tensors) {
    out_.add_string("general.architecture", s_.architecture);
    out_.add_string("general.type", "model");
    out_.add_string("general.name", s_.name);
    out_.add_string("general.description", "random weights, for tests of programs");
    attention();
    rope();
    if (s_.experts > 0) experts();
    if (s_.nextn > 0) number("nextn_predict_layers", s_.nextn);
    if (s_.index_topk > 0) indexer();
    add_vocabulary(make_vocabulary(tokenizer_name(s_), s_.vocab), &out_);
    out_.add("general.quantization_version", uint32_t{2});
    if (const auto type = file_type(tensors)) out_.add("general.file_type", *type);
    return std::move(out_);
  }

 private:
  std::string key(std::string_view name) const { return cat(s_.architecture, ".", name); }
  void number(std::string_view name, int64_t value) {
    out_.add(key(name), static_cast<uint32_t>(value));
  }
  void real(std::string_view name, double value) { out_.add(key(name), static_cast<float>(value)); }

  void attention() {
    number("block_count", s_.blocks());
    number("context_length", s_.context);
    number("embedding_length", s_.hidden);
    number("feed_forward_length", s_.dense_ffn);
    number("attention.head_count", s_.heads);
    number("attention.head_count_kv", s_.fused_kv_b ? s_.heads : 1);
    real("attention.layer_norm_rms_epsilon", s_.rms_eps);
    number("vocab_size", s_.vocab);
    if (s_.q_lora > 0) number("attention.q_lora_rank", s_.q_lora);
    number("attention.kv_lora_rank", s_.kv_lora);
    if (s_.fused_kv_b) {  // the widths of heads, before files described the latent
      number("attention.key_length", s_.qk_head());
      number("attention.value_length", s_.v_head);
      return;
    }
    number("attention.key_length", s_.kv_lora + s_.qk_rope);
    number("attention.value_length", s_.kv_lora);
    number("attention.key_length_mla", s_.qk_head());
    number("attention.value_length_mla", s_.v_head);
  }

  void rope() {
    number("rope.dimension_count", s_.qk_rope);
    real("rope.freq_base", s_.rope_base);
    if (s_.yarn_factor == 0) return;
    out_.add_string(key("rope.scaling.type"), "yarn");
    real("rope.scaling.factor", s_.yarn_factor);
    number("rope.scaling.original_context_length", s_.yarn_original_context);
    real("rope.scaling.yarn_log_multiplier", 0.1 * s_.yarn_mscale_all_dim);
    if (s_.yarn_beta_fast == 32 && s_.yarn_beta_slow == 1) return;
    real("rope.scaling.yarn_beta_fast", s_.yarn_beta_fast);
    real("rope.scaling.yarn_beta_slow", s_.yarn_beta_slow);
  }

  void experts() {
    number("leading_dense_block_count", s_.leading_dense);
    number("expert_count", s_.experts);
    number("expert_used_count", s_.experts_used);
    number("expert_shared_count", s_.shared_experts);
    number("expert_feed_forward_length", s_.expert_ffn);
    real("expert_weights_scale", s_.weights_scale);
    // Files of before the MLA split have none of what follows.
    if (s_.fused_kv_b) return;
    number("expert_group_count", s_.expert_groups);
    number("expert_group_used_count", s_.expert_groups_used);
    out_.add(key("expert_weights_norm"), s_.weights_norm);
    number("expert_gating_func", s_.gating == "softmax" ? 1 : 2);
  }

  void indexer() {
    number("attention.indexer.head_count", s_.index_heads);
    number("attention.indexer.key_length", s_.index_head_dim);
    number("attention.indexer.top_k", s_.index_topk);
    if (s_.index_schedule == "all" || !s_.index_types_key) return;
    const std::vector<bool> full = full_index_layers(s_);
    const std::vector<uint8_t> bytes(full.begin(), full.end());
    gguf::Array array{.element_type = gguf::ValueType::kBool,
                      .count = bytes.size(),
                      .bytes = std::as_bytes(std::span(bytes))};
    out_.add_value(key("attention.indexer.types"),
                   gguf::Value(gguf::ValueType::kArray, std::move(array)));
  }

  const ModelShape& s_;
  gguf::MetadataEncoder out_;
};

}  // namespace

gguf::MetadataEncoder make_metadata(const ModelShape& shape, std::span<const TensorPlan> tensors) {
  return Keys(shape).make(tensors);
}

}  // namespace topknot::synth
