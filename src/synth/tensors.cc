#include "synth/tensors.h"

#include <algorithm>
#include <cmath>
#include <regex>

#include "base/strings.h"

namespace topknot::synth {
namespace {

using tensor::DType;

constexpr float kEmbeddingStd = 0.5F;
constexpr Distribution kNorm = {.mean = 1, .std = 0.05F};
constexpr Distribution kBias = {.mean = 0, .std = 0.02F};

std::vector<uint64_t> dims(std::initializer_list<int64_t> ne) { return {ne.begin(), ne.end()}; }

class TensorList {
 public:
  TensorList(const ModelShape& shape, double gain) : s_(shape), gain_(gain) {}

  std::vector<TensorPlan> list() {
    if (!s_.tied_output) weight("output.weight", {s_.hidden, s_.vocab});
    values("output_norm.weight", s_.hidden, kNorm);
    add("token_embd.weight", dims({s_.hidden, s_.vocab}), {.mean = 0, .std = kEmbeddingStd});
    const std::vector<bool> full = full_index_layers(s_);
    for (int64_t block = 0; block < s_.blocks(); ++block) {
      const auto begin = static_cast<ptrdiff_t>(out_.size());
      prefix_ = cat("blk.", block, ".");
      attention();
      const bool mtp = block >= s_.layers;
      const bool own = mtp || s_.index_everywhere || full[static_cast<size_t>(block)];
      if (s_.index_topk > 0 && own) indexer();
      feed_forward(block);
      if (mtp) next_token();
      std::sort(out_.begin() + begin, out_.end(),
                [](const TensorPlan& a, const TensorPlan& b) { return a.spec.name < b.spec.name; });
    }
    return std::move(out_);
  }

 private:
  void add(std::string_view name, std::vector<uint64_t> ne, Distribution values) {
    TensorPlan plan;
    plan.spec.name = cat(prefix_, name);
    plan.spec.dims = static_cast<uint32_t>(ne.size());
    std::copy(ne.begin(), ne.end(), plan.spec.ne.begin());
    plan.values = values;
    out_.push_back(std::move(plan));
  }
  // Its products are sums over `fan_in` elements of the input; 0: the rows' length.
  void weight(std::string_view name, std::initializer_list<int64_t> ne, int64_t fan_in = 0) {
    const auto inputs = static_cast<double>(fan_in > 0 ? fan_in : *ne.begin());
    add(name, dims(ne), {.mean = 0, .std = static_cast<float>(gain_ / std::sqrt(inputs))});
  }
  void values(std::string_view name, int64_t count, Distribution distribution) {
    add(name, dims({count}), distribution);
  }

  void attention() {
    values("attn_norm.weight", s_.hidden, kNorm);
    if (s_.q_lora > 0) {
      weight("attn_q_a.weight", {s_.hidden, s_.q_lora});
      values("attn_q_a_norm.weight", s_.q_lora, kNorm);
      weight("attn_q_b.weight", {s_.q_lora, s_.heads * s_.qk_head()});
    } else {
      weight("attn_q.weight", {s_.hidden, s_.heads * s_.qk_head()});
    }
    weight("attn_kv_a_mqa.weight", {s_.hidden, s_.kv_lora + s_.qk_rope});
    values("attn_kv_a_norm.weight", s_.kv_lora, kNorm);
    if (s_.fused_kv_b) {
      weight("attn_kv_b.weight", {s_.kv_lora, s_.heads * (s_.qk_nope + s_.v_head)});
    } else {
      // W_UK lies transposed: as a matrix of the paper it takes the latent.
      weight("attn_k_b.weight", {s_.qk_nope, s_.kv_lora, s_.heads}, s_.kv_lora);
      weight("attn_v_b.weight", {s_.kv_lora, s_.v_head, s_.heads});
    }
    weight("attn_output.weight", {s_.heads * s_.v_head, s_.hidden});
  }

  void indexer() {
    weight("indexer.attn_q_b.weight", {s_.q_lora, s_.index_heads * s_.index_head_dim});
    weight("indexer.attn_k.weight", {s_.hidden, s_.index_head_dim});
    values("indexer.k_norm.weight", s_.index_head_dim, kNorm);
    values("indexer.k_norm.bias", s_.index_head_dim, kBias);
    weight("indexer.proj.weight", {s_.hidden, s_.index_heads});
  }

  void feed_forward(int64_t block) {
    values("ffn_norm.weight", s_.hidden, kNorm);
    if (!s_.has_experts(block)) {
      weight("ffn_gate.weight", {s_.hidden, s_.dense_ffn});
      weight("ffn_up.weight", {s_.hidden, s_.dense_ffn});
      weight("ffn_down.weight", {s_.dense_ffn, s_.hidden});
      return;
    }
    weight("ffn_gate_inp.weight", {s_.hidden, s_.experts});
    if (s_.gating == "sigmoid") values("exp_probs_b.bias", s_.experts, kBias);
    if (s_.fused_gate_up) {
      weight("ffn_gate_up_exps.weight", {s_.hidden, 2 * s_.expert_ffn, s_.experts});
    } else {
      weight("ffn_gate_exps.weight", {s_.hidden, s_.expert_ffn, s_.experts});
      weight("ffn_up_exps.weight", {s_.hidden, s_.expert_ffn, s_.experts});
    }
    weight("ffn_down_exps.weight", {s_.expert_ffn, s_.hidden, s_.experts});
    if (s_.shared_experts == 0) return;
    const int64_t shared = s_.expert_ffn * s_.shared_experts;
    weight("ffn_gate_shexp.weight", {s_.hidden, shared});
    weight("ffn_up_shexp.weight", {s_.hidden, shared});
    weight("ffn_down_shexp.weight", {shared, s_.hidden});
  }

  void next_token() {
    weight("nextn.eh_proj.weight", {2 * s_.hidden, s_.hidden});
    values("nextn.enorm.weight", s_.hidden, kNorm);
    values("nextn.hnorm.weight", s_.hidden, kNorm);
    values("nextn.shared_head_norm.weight", s_.hidden, kNorm);
  }

  const ModelShape& s_;
  double gain_;
  std::string prefix_;
  std::vector<TensorPlan> out_;
};

// What quantisers write where rows are no whole blocks of 256 (gguf.md 3.3).
DType fallback(DType type) {
  switch (type) {
    case DType::kQ4_K: return DType::kQ5_0;
    case DType::kQ5_K: return DType::kQ5_1;
    case DType::kQ6_K: return DType::kQ8_0;
    default: return DType::kIQ4_NL;
  }
}

DType fitting(DType type, uint64_t row) {
  const auto fits = [row](DType each) {
    return row % tensor::dtype_info(each).block_elements == 0;
  };
  if (fits(type)) return type;
  return fits(fallback(type)) ? fallback(type) : DType::kF16;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return out;
}

std::string type_list() {
  std::string out;
  for (const tensor::DTypeInfo& info : tensor::dtypes()) {
    if (can_generate(info.type)) out += cat(out.empty() ? "" : " ", lower(info.name));
  }
  return out;
}

Error bad_rule(std::string_view text, std::string why, std::string fix) {
  return Error{.code = Code::kInvalidArgument,
               .what = cat("'", printable(text), "' is no rule for types"),
               .where = {},
               .why = std::move(why),
               .fix = std::move(fix)};
}

}  // namespace

Result<TypeRule> TypeRule::parse(std::string_view text) {
  const size_t equals = text.rfind('=');
  const std::string_view name = equals == std::string_view::npos ? text : text.substr(equals + 1);
  TypeRule rule;
  rule.pattern = equals == std::string_view::npos ? ".*" : std::string(text.substr(0, equals));
  if (rule.pattern.empty() || rule.pattern.size() > kMaxPatternBytes) {
    return bad_rule(
        text,
        cat("its pattern has ", rule.pattern.size(), " bytes; needed: 1 to ", kMaxPatternBytes),
        "write PATTERN=TYPE, as in 'ffn_.*_exps=q4_k'");
  }
  try {
    const std::regex compiled(rule.pattern, std::regex::ECMAScript | std::regex::nosubs);
  } catch (const std::regex_error& error) {
    return bad_rule(text, cat("its pattern is no regular expression: ", error.what()),
                    "write PATTERN=TYPE, as in 'ffn_.*_exps=q4_k'");
  }
  for (const tensor::DTypeInfo& info : tensor::dtypes()) {
    if (lower(info.name) != lower(name) || !can_generate(info.type)) continue;
    rule.type = info.type;
    return rule;
  }
  return bad_rule(text, cat("no weight can have the type '", printable(name), "'"),
                  cat("one of: ", type_list()));
}

std::vector<TensorPlan> plan_tensors(const ModelShape& shape, double gain) {
  return TensorList(shape, gain).list();
}

void choose_types(std::span<const TypeRule> rules, std::vector<TensorPlan>* tensors) {
  std::vector<std::regex> patterns;
  for (const TypeRule& rule : rules) {
    patterns.emplace_back(rule.pattern, std::regex::ECMAScript | std::regex::nosubs);
  }
  for (TensorPlan& tensor : *tensors) {
    if (tensor.spec.dims == 1) continue;
    for (size_t i = patterns.size(); i-- > 0;) {
      if (!std::regex_search(tensor.spec.name, patterns[i])) continue;
      tensor.spec.type = fitting(rules[i].type, tensor.spec.ne[0]);
      break;
    }
  }
}

}  // namespace topknot::synth
