#include "synth/shape.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/strings.h"
#include "base/try.h"
#include "synth/vocabulary.h"

namespace topknot::synth {
namespace {

using S = ModelShape;

constexpr ShapeField kFields[] = {
    {"architecture", &S::architecture, "glm-dsa, deepseek32 or deepseek2"},
    {"name", &S::name, "general.name"},
    {"tokenizer", &S::tokenizer, "glm4, deepseek-v3, deepseek-llm or kimi-k2"},
    {"layers", &S::layers, "main layers"},
    {"nextn", &S::nextn, "MTP blocks behind the main layers"},
    {"hidden", &S::hidden, "width of the residual stream"},
    {"vocab", &S::vocab, "tokens"},
    {"context", &S::context, "trained context"},
    {"heads", &S::heads, "attention heads"},
    {"q_lora", &S::q_lora, "width of the query latent; 0: one direct projection"},
    {"kv_lora", &S::kv_lora, "width of the key-value latent"},
    {"qk_nope", &S::qk_nope, "elements of a query head without rotation"},
    {"qk_rope", &S::qk_rope, "rotated elements of a query head"},
    {"v_head", &S::v_head, "elements of a value head"},
    {"fused_kv_b", &S::fused_kv_b, "attn_kv_b, as files of before the MLA split"},
    {"dense_ffn", &S::dense_ffn, "width of dense feed-forward layers"},
    {"leading_dense", &S::leading_dense, "dense layers before those with experts"},
    {"experts", &S::experts, "routed experts; 0: every layer is dense"},
    {"experts_used", &S::experts_used, "routed experts of a token"},
    {"shared_experts", &S::shared_experts, "experts every token uses"},
    {"expert_ffn", &S::expert_ffn, "width of an expert"},
    {"expert_groups", &S::expert_groups, "groups of experts"},
    {"expert_groups_used", &S::expert_groups_used, "groups a token may use"},
    {"gating", &S::gating, "sigmoid or softmax"},
    {"weights_norm", &S::weights_norm, "expert weights are normalised"},
    {"weights_scale", &S::weights_scale, "factor on the expert weights"},
    {"fused_gate_up", &S::fused_gate_up, "ffn_gate_up_exps"},
    {"rms_eps", &S::rms_eps, "epsilon of the norms"},
    {"rope_base", &S::rope_base, "base of the rotation frequencies"},
    {"yarn_factor", &S::yarn_factor, "YaRN factor; 0: none"},
    {"yarn_original_context", &S::yarn_original_context, "context before YaRN"},
    {"yarn_beta_fast", &S::yarn_beta_fast, "YaRN beta_fast"},
    {"yarn_beta_slow", &S::yarn_beta_slow, "YaRN beta_slow"},
    {"yarn_mscale_all_dim", &S::yarn_mscale_all_dim, "YaRN mscale_all_dim"},
    {"index_topk", &S::index_topk, "positions the indexer selects; 0: no indexer"},
    {"index_heads", &S::index_heads, "heads of the indexer"},
    {"index_head_dim", &S::index_head_dim, "elements of an index key"},
    {"index_schedule", &S::index_schedule, "all, FREQUENCY,OFFSET or letters F and S"},
    {"index_types_key", &S::index_types_key, "write the schedule's key"},
    {"index_everywhere", &S::index_everywhere, "indexer tensors in shared layers too"},
    {"tied_output", &S::tied_output, "no output.weight"},
};

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return value;
}

std::optional<bool> parse_bool(std::string_view text) {
  if (text == "true" || text == "1" || text == "yes") return true;
  if (text == "false" || text == "0" || text == "no") return false;
  return {};
}

// The text as the member's type; what is needed when it is none.
const char* assign(ModelShape* shape, const ShapeField::Member& member, std::string_view text) {
  const auto store = [&](auto* place, auto value) {
    if (value) *place = *value;
    return value.has_value();
  };
  if (const auto* i = std::get_if<int64_t S::*>(&member))
    return store(&(shape->**i), parse_number<int64_t>(text)) ? nullptr : "an integer";
  if (const auto* d = std::get_if<double S::*>(&member))
    return store(&(shape->**d), parse_number<double>(text)) ? nullptr : "a number";
  if (const auto* b = std::get_if<bool S::*>(&member))
    return store(&(shape->**b), parse_bool(text)) ? nullptr : "true or false";
  shape->*std::get<std::string S::*>(member) = text;
  return nullptr;
}

std::optional<std::vector<bool>> parse_schedule(const ModelShape& shape) {
  const auto layers = static_cast<size_t>(shape.layers);
  const std::string_view text = shape.index_schedule;
  if (text == "all") return std::vector<bool>(layers, true);
  std::vector<bool> full(layers);
  if (const size_t comma = text.find(','); comma != std::string_view::npos) {
    const auto frequency = parse_number<int64_t>(text.substr(0, comma));
    const auto offset = parse_number<int64_t>(text.substr(comma + 1));
    if (!frequency || !offset || *frequency < 1 || *frequency > kMaxLayers || *offset < 1 ||
        *offset > kMaxLayers) {
      return {};
    }
    for (size_t i = 0; i < layers; ++i) {
      const auto past = std::max<int64_t>(static_cast<int64_t>(i) - *offset + 1, 0);
      full[i] = past % *frequency == 0;
    }
    return full;
  }
  if (text.size() != layers || text.find_first_not_of("FS") != std::string_view::npos) return {};
  for (size_t i = 0; i < layers; ++i) full[i] = text[i] == 'F';
  if (!full[0]) return {};
  return full;
}

class Checker {
 public:
  explicit Checker(const ModelShape& shape) : s_(shape) {}

  Status check() {
    check_names();
    check_attention();
    check_ffn();
    if (s_.index_topk != 0) check_indexer();
    if (s_.yarn_factor != 0) {
      number("yarn_factor", s_.yarn_factor, 1, 1e6);
      range("yarn_original_context", s_.yarn_original_context, 1, kMaxContext);
      number("yarn_beta_fast", s_.yarn_beta_fast, 1e-6, 1e6);
      number("yarn_beta_slow", s_.yarn_beta_slow, 1e-6, 1e6);
      number("yarn_mscale_all_dim", s_.yarn_mscale_all_dim, -100, 100);
    }
    if (why_.empty()) return {};
    return Error{.code = Code::kInvalidArgument,
                 .what = "no model can have this shape",
                 .where = s_.name,
                 .why = why_,
                 .fix = "change these values"};
  }

 private:
  void problem(const std::string& text) { why_ += cat(why_.empty() ? "" : "\n", text); }
  void need(bool holds, std::string_view name, const auto& found, std::string_view needed) {
    if (!holds) problem(cat(name, " is ", found, "; needed: ", needed));
  }
  void range(std::string_view name, int64_t value, int64_t low, int64_t high) {
    need(value >= low && value <= high, name, value, cat(low, " to ", high));
  }
  void number(std::string_view name, double value, double low, double high) {
    need(value >= low && value <= high, name, value, cat(low, " to ", high));
  }

  void check_names() {
    const std::string& arch = s_.architecture;
    need(arch == "glm-dsa" || arch == "deepseek32" || arch == "deepseek2", "architecture",
         printable(arch), "glm-dsa, deepseek32 or deepseek2");
    if (find_invalid_utf8(s_.name) != std::string::npos) problem("name is not UTF-8");
    const auto smallest = min_vocabulary(tokenizer_name(s_));
    need(smallest.has_value(), "tokenizer", printable(s_.tokenizer),
         "glm4, deepseek-v3, deepseek-llm or kimi-k2");
    range("vocab", s_.vocab, smallest.value_or(1), kMaxVocab);
    range("layers", s_.layers, 1, kMaxLayers);
    range("nextn", s_.nextn, 0, kMaxLayers);
    range("hidden", s_.hidden, 1, kMaxWidth);
    range("context", s_.context, 1, kMaxContext);
  }

  void check_attention() {
    range("heads", s_.heads, 1, kMaxWidth);
    range("q_lora", s_.q_lora, 0, kMaxWidth);
    range("kv_lora", s_.kv_lora, 1, kMaxWidth);
    range("qk_nope", s_.qk_nope, 1, kMaxWidth);
    range("qk_rope", s_.qk_rope, 0, kMaxWidth);
    need(s_.qk_rope % 2 == 0, "qk_rope", s_.qk_rope, "an even number");
    range("v_head", s_.v_head, 1, kMaxWidth);
    number("rms_eps", s_.rms_eps, 0, 1);
    number("rope_base", s_.rope_base, 1, 1e15);
  }

  void check_ffn() {
    range("leading_dense", s_.leading_dense, 0, kMaxLayers);
    range("dense_ffn", s_.dense_ffn, 1, kMaxWidth);
    range("experts", s_.experts, 0, kMaxExperts);
    if (s_.experts == 0) return;
    range("experts_used", s_.experts_used, 1, std::max<int64_t>(s_.experts, 1));
    range("shared_experts", s_.shared_experts, 0, kMaxExperts);
    range("expert_ffn", s_.expert_ffn, 1, kMaxWidth);
    range("expert_groups", s_.expert_groups, 1, std::max<int64_t>(s_.experts, 1));
    range("expert_groups_used", s_.expert_groups_used, 1, std::max<int64_t>(s_.expert_groups, 1));
    need(s_.gating == "sigmoid" || s_.gating == "softmax", "gating", printable(s_.gating),
         "sigmoid or softmax");
    number("weights_scale", s_.weights_scale, -1e6, 1e6);
    if (s_.expert_groups < 1) return;
    need(s_.experts % s_.expert_groups == 0, "expert_groups", s_.expert_groups,
         cat("a divisor of the ", s_.experts, " experts"));
    need(s_.experts_used <= s_.experts / s_.expert_groups * s_.expert_groups_used, "experts_used",
         s_.experts_used, "at most the experts of the groups that are used");
  }

  void check_indexer() {
    range("index_topk", s_.index_topk, 1, kMaxContext);
    need(s_.architecture != "deepseek2", "index_topk", s_.index_topk, "0 for deepseek2");
    range("index_heads", s_.index_heads, 1, kMaxWidth);
    range("index_head_dim", s_.index_head_dim, std::max<int64_t>(s_.qk_rope, 1), kMaxWidth);
    need(s_.q_lora > 0, "q_lora", s_.q_lora, "more than 0: the indexer projects from that latent");
    if (s_.layers < 1 || s_.layers > kMaxLayers) return;
    need(parse_schedule(s_).has_value(), "index_schedule", printable(s_.index_schedule),
         cat("all, FREQUENCY,OFFSET, or ", s_.layers, " letters F and S that begin with F"));
  }

  const ModelShape& s_;
  std::string why_;
};

}  // namespace

ModelShape default_shape(std::string_view architecture) {
  ModelShape s;
  s.architecture = architecture;
  if (architecture == "glm-dsa") return s;
  s.context = 163'840;
  s.qk_nope = 128;
  s.v_head = 128;
  s.rms_eps = 1e-6;
  s.rope_base = 1e4;
  if (architecture == "deepseek2") s.index_topk = 0;
  return s;
}

std::span<const ShapeField> shape_fields() { return kFields; }

Status set_field(ModelShape* shape, std::string_view name, std::string_view value) {
  std::string wanted(name);
  std::replace(wanted.begin(), wanted.end(), '-', '_');
  const auto* const field =
      std::find_if(std::begin(kFields), std::end(kFields),
                   [&](const ShapeField& each) { return each.name == wanted; });
  if (field == std::end(kFields)) {
    std::vector<std::string> names;
    for (const ShapeField& each : kFields) names.emplace_back(each.name);
    std::string fix;
    for (const std::string& near : nearest(wanted, names))
      fix += cat(fix.empty() ? "" : ", ", near);
    return Error{.code = Code::kNotFound,
                 .what = cat("a shape has no '", printable(name), "'"),
                 .where = {},
                 .why = "it is no hyper-parameter of this family",
                 .fix = fix.empty() ? "see topknot synth --help" : cat("did you mean ", fix, "?")};
  }
  const char* needed = assign(shape, field->member, value);
  if (needed == nullptr) return {};
  return Error{.code = Code::kInvalidArgument,
               .what = cat("the shape's ", field->name, " has no such value"),
               .where = {},
               .why = cat("found '", printable(value), "'; needed: ", needed),
               .fix = "correct the value"};
}

Status read_shape(std::string_view json, std::string_view where, ModelShape* shape) {
  const auto parsed = nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) {
    return Error{.code = Code::kInvalidArgument,
                 .what = "the shape cannot be read",
                 .where = std::string(where),
                 .why = parsed.is_discarded() ? "it is not JSON" : "it is not a JSON object",
                 .fix = R"(write one object, as in {"layers": 4, "hidden": 512})"};
  }
  for (const auto& [key, value] : parsed.items()) {
    const bool scalar = value.is_number() || value.is_boolean() || value.is_string();
    Status done = !scalar             ? set_field(shape, key, "")
                  : value.is_string() ? set_field(shape, key, value.get<std::string>())
                                      : set_field(shape, key, value.dump());
    if (done) continue;
    if (done.error().where.empty()) done.error().where = where;
    return done;
  }
  return {};
}

Status check_shape(const ModelShape& shape) { return Checker(shape).check(); }

std::vector<bool> full_index_layers(const ModelShape& shape) {
  return parse_schedule(shape).value_or(std::vector<bool>(static_cast<size_t>(shape.layers), true));
}

std::string_view tokenizer_name(const ModelShape& shape) {
  if (!shape.tokenizer.empty()) return shape.tokenizer;
  return shape.architecture == "glm-dsa" ? "glm4" : "deepseek-v3";
}

}  // namespace topknot::synth
