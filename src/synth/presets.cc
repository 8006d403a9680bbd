#include "synth/presets.h"

#include <array>

#include "base/strings.h"

namespace topknot::synth {
namespace {

using tensor::DType;

constexpr uint64_t kPublishedPartBytes = 50'000'000'000;  // what publishers split at

TypeRule rule(std::string pattern, DType type) { return {std::move(pattern), type}; }

// "^blk\.(3|78)\.name": the tensors of these blocks.
std::string in_blocks(const std::vector<int64_t>& blocks, std::string_view name) {
  std::string numbers;
  for (const int64_t block : blocks) numbers += cat(numbers.empty() ? "" : "|", block);
  return cat(R"(^blk\.()", numbers, R"()\.)", name);
}

// The router and the indexer's head weights are left F32 by every publisher.
void keep_router(std::vector<TypeRule>* rules) {
  rules->push_back(rule("ffn_gate_inp|indexer[.]proj", DType::kF32));
}

// llama.cpp's Q4_K_M: the down projections of the first and last eighth of the blocks, and of every
// third between, are Q6_K, and so is the output.
std::vector<TypeRule> q4_k_m(const ModelShape& shape) {
  std::vector<int64_t> more;
  const int64_t n = shape.blocks();
  for (int64_t i = 0; i < n; ++i) {
    if (i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2) more.push_back(i);
  }
  std::vector<TypeRule> rules = {rule(".*", DType::kQ4_K), rule("^output", DType::kQ6_K),
                                 rule(in_blocks(more, "ffn_down"), DType::kQ6_K)};
  keep_router(&rules);
  return rules;
}

// What surrounds the experts in UD files of GLM-5: 709 tensors F32, as in a published census, the
// others Q8_0, Q5_K, Q6_K and Q4_K in about its numbers (476, 312, 82, 2), in all about 14 GiB.
// Which tensor has which type is our choice.
std::vector<TypeRule> unsloth_rest() {
  std::vector<TypeRule> rules = {
      rule(".*", DType::kQ8_0),
      rule("attn_q_b|attn_output|ffn_(gate|up)[._]", DType::kQ5_K),
      rule("indexer[.]attn_q_b", DType::kQ8_0),
      rule("ffn_down(_shexp)?[.]", DType::kQ6_K),
      rule("^token_embd", DType::kQ4_K),
      rule("^output", DType::kQ6_K),
  };
  keep_router(&rules);
  return rules;
}

ModelShape glm_5() {
  ModelShape s;
  s.architecture = "glm-dsa";
  s.name = "GLM-5";
  s.layers = 78;
  s.nextn = 1;
  s.hidden = 6144;
  s.vocab = 154'880;
  s.heads = 64;
  s.q_lora = 2048;
  s.dense_ffn = 12'288;
  s.leading_dense = 3;
  s.experts = 256;
  s.experts_used = 8;
  s.expert_ffn = 2048;
  s.index_topk = 2048;
  s.index_heads = 32;
  return s;
}

// Nearly all experts are Q4_K; a fixture of a published file has blk.3 at Q5_K and Q6_K. One more
// such block gives the published size.
PresetModel glm_5_q4() {
  PresetModel m{.shape = glm_5(), .types = unsloth_rest(), .split = {}};
  m.types.push_back(rule("_exps", DType::kQ4_K));
  m.types.push_back(rule(in_blocks({3, 78}, "ffn_(gate|up)_exps"), DType::kQ5_K));
  m.types.push_back(rule(in_blocks({3, 78}, "ffn_down_exps"), DType::kQ6_K));
  m.split = {.max_bytes = kPublishedPartBytes, .metadata_only_first = true};
  return m;
}

// The census of UD-Q2_K_XL: 148 gate and up tensors IQ2_XS, 2 Q2_K.
PresetModel glm_5_q2() {
  PresetModel m{.shape = glm_5(), .types = unsloth_rest(), .split = {}};
  m.types.push_back(rule("ffn_(gate|up)_exps", DType::kIQ2_XS));
  m.types.push_back(rule("ffn_down_exps", DType::kIQ3_XXS));
  m.types.push_back(rule(in_blocks({3}, "ffn_(gate|up)_exps"), DType::kQ4_K));
  m.types.push_back(rule(in_blocks({3}, "ffn_down_exps"), DType::kQ5_K));
  m.types.push_back(rule(in_blocks({78}, "ffn_(gate|up)_exps"), DType::kQ2_K));
  m.types.push_back(rule(in_blocks({78}, "ffn_down_exps"), DType::kQ3_K));
  m.split = {.max_bytes = kPublishedPartBytes, .metadata_only_first = true};
  return m;
}

// Published without the schedule's key, and with indexer tensors in every block.
PresetModel glm_52_q4() {
  PresetModel m = glm_5_q4();
  m.shape.name = "GLM-5.2";
  m.shape.context = 1'048'576;
  m.shape.rope_base = 8e6;
  m.shape.index_schedule = "4,3";
  m.shape.index_types_key = false;
  m.shape.index_everywhere = true;
  return m;
}

ModelShape deepseek_v3() {
  ModelShape s;
  s.architecture = "deepseek2";
  s.name = "DeepSeek-V3";
  s.layers = 61;
  s.hidden = 7168;
  s.vocab = 129'280;
  s.context = 163'840;
  s.heads = 128;
  s.q_lora = 1536;
  s.qk_nope = 128;
  s.v_head = 128;
  s.dense_ffn = 18'432;
  s.leading_dense = 3;
  s.experts = 256;
  s.experts_used = 8;
  s.expert_ffn = 2048;
  s.expert_groups = 8;
  s.expert_groups_used = 4;
  s.rms_eps = 1e-6;
  s.rope_base = 1e4;
  s.yarn_factor = 40;
  s.index_topk = 0;
  return s;
}

ModelShape deepseek_v32() {
  ModelShape s = deepseek_v3();
  s.architecture = "deepseek32";
  s.name = "DeepSeek-V3.2";
  s.nextn = 1;
  s.index_topk = 2048;
  s.index_heads = 64;
  return s;
}

// As published in 2024: attn_kv_b in one, and the keys of that time.
ModelShape deepseek_v2_lite() {
  ModelShape s;
  s.architecture = "deepseek2";
  s.name = "DeepSeek-V2-Lite";
  s.tokenizer = "deepseek-llm";
  s.layers = 27;
  s.hidden = 2048;
  s.vocab = 102'400;
  s.context = 163'840;
  s.heads = 16;
  s.q_lora = 0;
  s.qk_nope = 128;
  s.v_head = 128;
  s.fused_kv_b = true;
  s.dense_ffn = 10'944;
  s.experts = 64;
  s.experts_used = 6;
  s.shared_experts = 2;
  s.expert_ffn = 1408;
  s.gating = "softmax";
  s.weights_norm = false;
  s.weights_scale = 1;
  s.rms_eps = 1e-6;
  s.rope_base = 1e4;
  s.yarn_factor = 40;
  s.yarn_mscale_all_dim = 0.707;
  s.index_topk = 0;
  return s;
}

ModelShape kimi_k2() {
  ModelShape s = deepseek_v3();
  s.name = "Kimi-K2";
  s.tokenizer = "kimi-k2";
  s.vocab = 163'840;
  s.context = 131'072;
  s.heads = 64;
  s.leading_dense = 1;
  s.experts = 384;
  s.expert_groups = 1;
  s.expert_groups_used = 1;
  s.weights_scale = 2.827;
  s.rope_base = 5e4;
  s.yarn_factor = 32;
  s.yarn_beta_fast = 1;
  return s;
}

ModelShape glm_47_flash() {
  ModelShape s;
  s.architecture = "deepseek2";
  s.name = "GLM-4.7-Flash";
  s.tokenizer = "glm4";
  s.layers = 47;
  s.hidden = 2048;
  s.vocab = 154'880;
  s.heads = 20;
  s.q_lora = 768;
  s.dense_ffn = 10'240;
  s.experts = 64;
  s.experts_used = 4;
  s.expert_ffn = 1536;
  s.weights_scale = 1.8;
  s.index_topk = 0;
  return s;
}

PresetModel as_q4_k_m(const ModelShape& shape, bool split) {
  PresetModel m{.shape = shape, .types = q4_k_m(shape), .split = {}};
  if (split) m.split.max_bytes = kPublishedPartBytes;
  return m;
}

// GLM-5's heads on small matrices: a few MB, rows that all types fit.
ModelShape tiny() {
  ModelShape s;
  s.name = "tiny";
  s.layers = 4;
  s.vocab = 512;
  s.q_lora = 256;
  s.index_heads = 4;
  s.context = 16'384;
  return s;
}

// Between 0.5 and 4 G parameters, where one token's weights come from memory, not from a cache.
ModelShape bench() {
  ModelShape s;
  s.name = "bench";
  s.layers = 12;
  s.hidden = 2048;
  s.vocab = 32'768;
  s.heads = 16;
  s.q_lora = 768;
  s.dense_ffn = 6144;
  s.experts = 32;
  s.experts_used = 4;
  s.expert_ffn = 1536;
  s.index_heads = 32;
  s.index_topk = 2048;
  return s;
}

ModelShape bench_1g() {
  ModelShape s = bench();
  s.name = "bench-1g";
  s.layers = 10;
  s.experts = 16;
  s.expert_ffn = 1280;
  return s;
}

ModelShape small() {
  ModelShape s = bench();
  s.name = "small";
  s.layers = 6;
  s.hidden = 1024;
  s.vocab = 8192;
  s.heads = 8;
  s.q_lora = 512;
  s.dense_ffn = 2048;
  s.experts = 16;
  s.experts_used = 4;
  s.expert_ffn = 512;
  s.index_topk = 512;
  return s;
}

struct Entry {
  Preset preset;
  PresetModel (*make)();
};

constexpr Entry kEntries[] = {
    {{"tiny", "glm-dsa, 4 layers, a few MB"}, [] { return as_q4_k_m(tiny(), false); }},
    {{"small", "glm-dsa, 6 layers, about 0.1 GB"}, [] { return as_q4_k_m(small(), false); }},
    {{"bench-1g", "glm-dsa, 10 layers, about 1 GB"}, [] { return as_q4_k_m(bench_1g(), false); }},
    {{"bench", "glm-dsa, 12 layers, about 2.3 GB"}, [] { return as_q4_k_m(bench(), false); }},
    {{"glm-5-ud-q4_k_xl", "79 blocks, 10 parts, the first without tensors"}, glm_5_q4},
    {{"glm-5-ud-q2_k_xl", "79 blocks, IQ2_XS and IQ3_XXS experts"}, glm_5_q2},
    {{"glm-5.2-ud-q4_k_xl", "1 M context, indexer tensors in all blocks, no schedule"}, glm_52_q4},
    {{"deepseek-v3.2-q4_k_m", "deepseek32, 62 blocks"},
     [] { return as_q4_k_m(deepseek_v32(), true); }},
    {{"deepseek-v3-q4_k_m", "deepseek2, 61 blocks, expert groups"},
     [] { return as_q4_k_m(deepseek_v3(), true); }},
    {{"deepseek-v2-lite-q4_k_m", "deepseek2, fused attn_kv_b, no query latent"},
     [] { return as_q4_k_m(deepseek_v2_lite(), false); }},
    {{"kimi-k2-q4_k_m", "deepseek2, 384 experts"}, [] { return as_q4_k_m(kimi_k2(), true); }},
    {{"glm-4.7-flash-q4_k_m", "deepseek2 with GLM-5's heads"},
     [] { return as_q4_k_m(glm_47_flash(), false); }},
};

constexpr size_t kCount = sizeof(kEntries) / sizeof(kEntries[0]);

}  // namespace

std::span<const Preset> presets() {
  static constexpr auto kPresets = [] {
    std::array<Preset, kCount> out{};
    for (size_t i = 0; i < kCount; ++i) out[i] = kEntries[i].preset;
    return out;
  }();
  return kPresets;
}

Result<PresetModel> find_preset(std::string_view name) {
  std::vector<std::string> names;
  for (const Entry& entry : kEntries) {
    if (entry.preset.name == name) return entry.make();
    names.emplace_back(entry.preset.name);
  }
  std::vector<std::string> near = nearest(name, names);
  if (near.empty()) near = names;
  std::string list;
  for (const std::string& each : near) list += cat(list.empty() ? "" : ", ", each);
  return Error{.code = Code::kNotFound,
               .what = cat("no preset is called '", printable(name), "'"),
               .where = {},
               .why = "it is not in the list of topknot synth --help",
               .fix = cat("one of: ", list)};
}

}  // namespace topknot::synth
