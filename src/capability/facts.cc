#include "capability/facts.h"

#include "base/assert.h"
#include "base/strings.h"
#include "tensor/dtype.h"

namespace topknot::capability {
namespace {

constexpr std::array<std::string_view, kFactCount> kFactNames = {
    "device",         "sm",           "smem_per_block",   "selection",
    "heads",          "kv_lora_rank", "qk_rope_head_dim", "topk",
    "kv_format",      "page",         "index_n_heads",    "index_head_dim",
    "index_rope_dim", "dtype",        "qk_nope_head_dim", "head_size",
    "architecture",   "weights",      "tensor_ranks",     "context_ranks",
    "sequences",      "instructions", "weight_type",      "workspace_bytes",
};
constexpr std::array<std::string_view, 2> kDevices = {"cpu", "cuda"};
constexpr std::array<std::string_view, 2> kSelections = {"sparse", "dense"};
constexpr std::array<std::string_view, 6> kKvFormats = {"f32",  "bf16", "fp8_ds",
                                                        "q8_0", "f16",  "fp8_e4m3"};
constexpr std::array<std::string_view, 3> kActivations = {"f32", "bf16", "f16"};
constexpr std::array<std::string_view, 3> kLevels = {"portable", "avx2", "avx512"};
constexpr std::array<std::string_view, 6> kArchitectures = {"deepseek2", "deepseek32", "glm-dsa",
                                                            "glm5next",  "deepseek4",  "other"};
constexpr std::array<std::string_view, 2> kWeightFormats = {"gguf", "safetensors"};

}  // namespace

std::string_view fact_name(Fact fact) {
  TOPKNOT_ASSERT(fact < Fact::kCount);
  return kFactNames[static_cast<size_t>(fact)];
}

std::optional<Fact> fact_from_name(std::string_view name) {
  for (size_t i = 0; i < kFactCount; ++i) {
    if (kFactNames[i] == name) return static_cast<Fact>(i);
  }
  return std::nullopt;
}

std::span<const std::string_view> fact_value_names(Fact fact) {
  switch (fact) {
    case Fact::kDevice: return kDevices;
    case Fact::kSelection: return kSelections;
    case Fact::kKvFormat: return kKvFormats;
    case Fact::kDtype: return kActivations;
    case Fact::kArchitecture: return kArchitectures;
    case Fact::kWeights: return kWeightFormats;
    case Fact::kInstructions: return kLevels;
    default: return {};
  }
}

std::string fact_value(Fact fact, int64_t value) {
  if (fact == Fact::kWeightType) {
    const auto* type = tensor::find_dtype(static_cast<uint32_t>(value));
    return type != nullptr ? std::string(type->name) : cat("type ", value);
  }
  const auto names = fact_value_names(fact);
  if (value < 0 || value >= static_cast<int64_t>(names.size())) return cat(value);
  return std::string(names[static_cast<size_t>(value)]);
}

std::string_view kv_format_name(KvFormat format) { return kKvFormats[static_cast<size_t>(format)]; }

std::optional<KvFormat> kv_format_from_name(std::string_view name) {
  for (size_t i = 0; i < kKvFormats.size(); ++i) {
    if (kKvFormats[i] == name) return static_cast<KvFormat>(i);
  }
  return std::nullopt;
}

std::string_view activation_name(ActivationType type) {
  return kActivations[static_cast<size_t>(type)];
}

std::string Facts::to_string() const {
  std::string out;
  for (size_t i = 0; i < kFactCount; ++i) {
    if (!values_[i]) continue;
    const auto fact = static_cast<Fact>(i);
    if (!out.empty()) out += ' ';
    out += cat(fact_name(fact), "=", fact_value(fact, *values_[i]));
  }
  return out;
}

}  // namespace topknot::capability
