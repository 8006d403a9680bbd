// The parts of the metadata that the architectures of the family share (gguf.md section 2).
#include <cmath>
#include <limits>

#include "base/strings.h"
#include "model/architectures.h"

namespace topknot::model {
namespace {

// Trained contexts from here on belong to GLM-5.2 and later, whose published files often lack the
// schedule.
constexpr int64_t kIndexShareContext = 1'048'576;

std::vector<bool> periodic_schedule(int64_t layers, int64_t frequency, int64_t offset) {
  std::vector<bool> full(static_cast<size_t>(layers));
  for (int64_t i = 0; i < layers; ++i) {
    full[static_cast<size_t>(i)] = std::max<int64_t>(i - offset + 1, 0) % frequency == 0;
  }
  return full;
}

// attention.indexer.types: bools, integers 0/1, or "full"/"shared"; the MTP block may be listed
// too.
std::optional<std::vector<bool>> types_from_array(const gguf::Array& array, int64_t layers) {
  if (array.count < static_cast<uint64_t>(layers)) return std::nullopt;
  std::vector<bool> full;
  for (uint64_t i = 0; i < static_cast<uint64_t>(layers); ++i) {
    if (array.element_type == gguf::ValueType::kString) {
      const std::string_view text = array.strings[i];
      if (text != "full" && text != "shared") return std::nullopt;
      full.push_back(text == "full");
      continue;
    }
    const auto value = gguf::Value::element_unsigned(array, i);
    if (!value || *value > 1) return std::nullopt;
    full.push_back(*value == 1);
  }
  return full;
}

std::vector<bool> read_schedule(MetadataReader& reader, const ModelConfig& config) {
  const std::string types_key = "attention.indexer.types";
  if (const gguf::Value* types = reader.find(types_key)) {
    const gguf::Array* array = types->as_array();
    if (array != nullptr) {
      if (auto full = types_from_array(*array, config.layers)) return *std::move(full);
    }
    reader.problem(cat(reader.full_name(types_key), " is ", types->to_string(),
                       "; needed: ", config.layers, " booleans, 0/1, or \"full\"/\"shared\""));
    return std::vector<bool>(static_cast<size_t>(config.layers), true);
  }
  const char* frequency_key = reader.find("attention.indexer.top_k_freq") != nullptr
                                  ? "attention.indexer.top_k_freq"
                                  : "attention.indexer.top_k_frequency";
  if (const auto frequency = reader.optional(frequency_key, 1, kMaxLayers)) {
    const int64_t offset =
        reader.with_default("attention.indexer.skip_top_k_offset", 0, kMaxLayers, 2);
    return periodic_schedule(config.layers, *frequency, offset);
  }
  if (config.context_length >= kIndexShareContext) {
    reader.note(cat(reader.full_name(types_key), " is absent and the trained context is ",
                    config.context_length,
                    ": the GLM-5.2 schedule, an indexer in layers 0, 1, 2, 6, 10, ..."));
    return periodic_schedule(config.layers, 4, 3);
  }
  reader.note(cat(reader.full_name(types_key), " is absent and the trained context is ",
                  config.context_length, ": an indexer in every layer"));
  return std::vector<bool>(static_cast<size_t>(config.layers), true);
}

}  // namespace

void read_mla(MetadataReader& reader, ModelConfig* config) {
  if (const gguf::Value* name = reader.file().find_key("general.name")) {
    config->name = printable(name->as_string().value_or(""));
  }
  const int64_t blocks = reader.required("block_count", 1, kMaxLayers);
  config->nextn_layers = reader.with_default("nextn_predict_layers", 0, kMaxLayers, 0);
  config->layers = blocks - config->nextn_layers;
  if (config->layers < 1) {
    reader.problem(cat(reader.full_name("nextn_predict_layers"), " is ", config->nextn_layers,
                       " of ", blocks, " blocks; at least one main layer is needed"));
    config->layers = 1;
  }
  config->context_length = reader.required("context_length", 1, kMaxContext);
  config->hidden = reader.required("embedding_length", 1, kMaxWidth);
  config->vocab = reader.optional("vocab_size", 1, kMaxVocab).value_or(0);
  config->heads = reader.required("attention.head_count", 1, kMaxWidth);
  config->q_lora_rank =
      reader.with_default("attention.q_lora_rank", 0, kMaxWidth, 0, "one direct query projection");
  config->kv_lora_rank = reader.required("attention.kv_lora_rank", 1, kMaxWidth);
  config->qk_rope_head_dim = reader.required("rope.dimension_count", 0, kMaxWidth);
  // Files made before the MLA split hold the head widths in key_length and value_length.
  const bool split = reader.find("attention.key_length_mla") != nullptr;
  const int64_t qk =
      reader.required(split ? "attention.key_length_mla" : "attention.key_length", 1, kMaxWidth);
  config->v_head_dim = reader.required(
      split ? "attention.value_length_mla" : "attention.value_length", 1, kMaxWidth);
  config->qk_nope_head_dim = qk - config->qk_rope_head_dim;
  if (config->qk_nope_head_dim < 1) {
    reader.problem(cat(reader.full_name("rope.dimension_count"), " is ", config->qk_rope_head_dim,
                       "; it must be below the key width ", qk));
  }
  config->rms_eps =
      static_cast<float>(reader.required_number("attention.layer_norm_rms_epsilon", 0, 1));
}

void read_rope(MetadataReader& reader, ModelConfig* config) {
  RopeConfig& rope = config->rope;
  rope.dim = config->qk_rope_head_dim;
  rope.freq_base = reader.required_number("rope.freq_base", 1, 1e15);
  if (rope.dim % 2 != 0) {
    reader.problem(
        cat(reader.full_name("rope.dimension_count"), " is ", rope.dim, "; it must be even"));
  }
  const std::string type = reader.optional_string("rope.scaling.type").value_or("none");
  double mscale = 1;
  if (type == "yarn") {
    Yarn yarn;
    yarn.factor = reader.required_number("rope.scaling.factor", 1, 1e6);
    yarn.original_context = static_cast<double>(
        reader.required("rope.scaling.original_context_length", 1, kMaxContext));
    yarn.beta_fast = reader.optional_number("rope.scaling.yarn_beta_fast", 1e-6, 1e6).value_or(32);
    yarn.beta_slow = reader.optional_number("rope.scaling.yarn_beta_slow", 1e-6, 1e6).value_or(1);
    const auto multiplier = reader.optional_number("rope.scaling.yarn_log_multiplier", -10, 10);
    if (!multiplier) {
      reader.note(cat(reader.full_name("rope.scaling.yarn_log_multiplier"),
                      " is absent: attention is not rescaled for YaRN"));
    }
    yarn.log_multiplier = multiplier.value_or(0);
    mscale = 1 + yarn.log_multiplier * std::log(yarn.factor);
    rope.yarn = yarn;
  } else if (type != "none") {
    reader.problem(cat(reader.full_name("rope.scaling.type"), " is '", printable(type),
                       "'; none and yarn are understood"));
  }
  config->softmax_scale = static_cast<float>(
      mscale * mscale /
      std::sqrt(static_cast<double>(std::max<int64_t>(config->qk_head_dim(), 1))));
}

void read_moe(MetadataReader& reader, ops::Gating absent_gating, ModelConfig* config) {
  ops::RouterSpec& router = config->router;
  router.experts = reader.with_default("expert_count", 0, kMaxExperts, 0);
  config->leading_dense_layers = router.experts > 0
                                     ? reader.with_default("leading_dense_block_count", 0,
                                                           kMaxLayers, 0, "every layer has experts")
                                     : config->layers;
  if (config->leading_dense_layers > 0) {
    config->dense_ffn = reader.required("feed_forward_length", 1, kMaxWidth);
  }
  if (router.experts == 0) return;
  router.used = reader.required("expert_used_count", 1, static_cast<uint64_t>(router.experts));
  config->expert_ffn = reader.required("expert_feed_forward_length", 1, kMaxWidth);
  config->shared_experts = reader.with_default("expert_shared_count", 0, kMaxExperts, 0);
  router.groups = reader.with_default("expert_group_count", 1, kMaxExperts, 1);
  router.groups_used = reader.with_default("expert_group_used_count", 1, kMaxExperts, 1);
  if (router.experts % router.groups != 0 || router.groups_used > router.groups) {
    reader.problem(cat(router.experts, " experts cannot form ", router.groups, " groups of which ",
                       router.groups_used,
                       " are used (expert_group_count, expert_group_used_count)"));
  } else if (router.used > router.experts / router.groups * router.groups_used) {
    reader.problem(cat(reader.full_name("expert_used_count"), " is ", router.used, "; the ",
                       router.groups_used, " groups used hold fewer experts"));
  }
  router.scale =
      static_cast<float>(reader.optional_number("expert_weights_scale", -1e6, 1e6).value_or(1));
  router.normalise = reader.optional_bool("expert_weights_norm").value_or(false);
  router.gating = absent_gating;
  if (const auto gating = reader.optional("expert_gating_func", 1, 2)) {
    router.gating = *gating == 1 ? ops::Gating::kSoftmax : ops::Gating::kSigmoid;
  } else {
    reader.note(cat(reader.full_name("expert_gating_func"), " is absent: ",
                    absent_gating == ops::Gating::kSigmoid ? "sigmoid" : "softmax", " scores"));
  }
  // Without a layer that uses them no tensor confirms these widths, and buffers are sized by them.
  if (config->leading_dense_layers >= config->layers) {
    router = {};
    config->expert_ffn = config->shared_experts = 0;
  }
}

void read_indexer(MetadataReader& reader, ops::RopeFlavour default_flavour, ModelConfig* config) {
  const std::string key = "attention.indexer.top_k";
  const auto topk = reader.optional(key, 0, kMaxContext);
  if (!topk || *topk == 0) {
    config->sparse_reason = cat(reader.full_name(key), topk ? " is 0" : " is absent");
    return;
  }
  IndexerConfig indexer;
  indexer.topk = *topk;
  indexer.heads = reader.required("attention.indexer.head_count", 1, kMaxWidth);
  indexer.head_dim = reader.required("attention.indexer.key_length", 1, kMaxWidth);
  indexer.rope_dim = config->qk_rope_head_dim;
  if (config->q_lora_rank == 0) {
    reader.problem(cat(reader.full_name("attention.q_lora_rank"),
                       " is 0 or absent; the indexer projects its queries from that latent"));
  }
  if (indexer.rope_dim > indexer.head_dim) {
    reader.problem(cat(reader.full_name("attention.indexer.key_length"), " is ", indexer.head_dim,
                       "; the ", indexer.rope_dim, " rotated elements do not fit"));
  }
  indexer.rope_flavour = default_flavour;
  if (const auto interleave = reader.optional_bool("attention.indexer.rope_interleave")) {
    indexer.rope_flavour =
        *interleave ? ops::RopeFlavour::kInterleaved : ops::RopeFlavour::kHalfSplit;
  }
  indexer.full_layers = read_schedule(reader, *config);
  if (!indexer.full_layers.front()) {
    reader.problem(cat("layer 0 reuses a selection that no layer before it makes (",
                       reader.full_name("attention.indexer.types"), ")"));
  }
  config->sparse_reason = cat(reader.full_name(key), " = ", *topk);
  config->indexer = std::move(indexer);
}

}  // namespace topknot::model
