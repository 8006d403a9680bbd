// deepseek2: DeepSeek V2, V2-Lite, V3, R1, V3.1, Kimi-K2 and GLM-4.7-Flash, dense MLA.
// deepseek32: DeepSeek-V3.2, the same with the indexer. (models.md sections 1, 3 and 5)
#include "base/strings.h"
#include "model/architectures.h"

namespace topknot::model {
namespace {

constexpr int64_t kGlmVocab = 154'880;

// vocab_size may be absent; the tokenizer's length then tells the families apart.
int64_t token_count(MetadataReader& reader, const ModelConfig& config) {
  if (config.vocab > 0) return config.vocab;
  const gguf::Value* tokens = reader.file().find_key("tokenizer.ggml.tokens");
  const gguf::Array* array = tokens != nullptr ? tokens->as_array() : nullptr;
  return array != nullptr ? static_cast<int64_t>(array->count) : 0;
}

// Without the key the whole family is softmax, except GLM-4.7-Flash, whose first files lack it.
ops::Gating absent_gating(MetadataReader& reader, const ModelConfig& config) {
  const bool flash =
      (config.layers == 47 || config.layers == 48) && token_count(reader, config) == kGlmVocab;
  return flash ? ops::Gating::kSigmoid : ops::Gating::kSoftmax;
}

// Files from before the group keys: the shapes that were only ever trained with groups get theirs.
void absent_groups(MetadataReader& reader, ModelConfig* config) {
  ops::RouterSpec& router = config->router;
  const bool sigmoid = router.gating == ops::Gating::kSigmoid;
  if (router.experts == 256 && sigmoid && config->layers == 61) {
    router.groups = 8;
    router.groups_used = 4;
  } else if (router.experts == 160 && !sigmoid) {
    router.groups = 8;
    router.groups_used = 3;
  } else {
    return;
  }
  reader.note(cat(reader.full_name("expert_group_count"), " is absent: ", router.groups,
                  " groups of which ", router.groups_used, " are used, as a model of ",
                  router.experts, " experts was trained"));
}

ModelConfig read_deepseek(MetadataReader& reader, std::string architecture) {
  ModelConfig config;
  config.architecture = std::move(architecture);
  read_mla(reader, &config);
  read_rope(reader, &config);
  read_moe(reader, absent_gating(reader, config), &config);
  if (config.router.experts > 0 && reader.find("expert_group_count") == nullptr) {
    absent_groups(reader, &config);
  }
  // The selection bias came with sigmoid scores (V3); a softmax model (V2) has none.
  config.router_bias = config.router.experts > 0 && config.router.gating == ops::Gating::kSigmoid;
  return config;
}

}  // namespace

ModelConfig read_deepseek2(MetadataReader& reader) {
  ModelConfig config = read_deepseek(reader, "deepseek2");
  config.sparse_reason = "the deepseek2 architecture has no indexer";
  return config;
}

ModelConfig read_deepseek32(MetadataReader& reader) {
  ModelConfig config = read_deepseek(reader, "deepseek32");
  // V3.2's indexer rotates half-split pairs, although its main attention rotates adjacent ones.
  read_indexer(reader, ops::RopeFlavour::kHalfSplit, &config);
  return config;
}

}  // namespace topknot::model
