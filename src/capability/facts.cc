#include "capability/facts.h"

#include "base/assert.h"
#include "base/strings.h"
#include "tensor/dtype.h"

namespace topknot::capability {
namespace {

constexpr std::array<std::string_view, kFactCount> kFactNames = {
    "device",          "sm",           "smem_per_block",   "selection",
    "heads",           "kv_lora_rank", "qk_rope_head_dim", "topk",
    "kv_format",       "page",         "index_n_heads",    "index_head_dim",
    "index_rope_dim",  "dtype",        "instructions",     "weight_type",
    "workspace_bytes", "ranks",
};
constexpr std::array<std::string_view, 2> kDevices = {"cpu", "cuda"};
constexpr std::array<std::string_view, 2> kSelections = {"sparse", "dense"};
constexpr std::array<std::string_view, 4> kKvFormats = {"f32", "bf16", "fp8_ds", "q8_0"};
constexpr std::array<std::string_view, 3> kActivations = {"f32", "bf16", "f16"};
constexpr std::array<std::string_view, 3> kLevels = {"portable", "avx2", "avx512"};

template <size_t N>
std::string name_or_number(const std::array<std::string_view, N>& names, int64_t value) {
  if (value < 0 || value >= static_cast<int64_t>(N)) return cat(value);
  return std::string(names[static_cast<size_t>(value)]);
}

}  // namespace

std::string_view fact_name(Fact fact) {
  TOPKNOT_ASSERT(fact < Fact::kCount);
  return kFactNames[static_cast<size_t>(fact)];
}

std::string fact_value(Fact fact, int64_t value) {
  switch (fact) {
    case Fact::kDevice: return name_or_number(kDevices, value);
    case Fact::kSelection: return name_or_number(kSelections, value);
    case Fact::kKvFormat: return name_or_number(kKvFormats, value);
    case Fact::kDtype: return name_or_number(kActivations, value);
    case Fact::kInstructions: return name_or_number(kLevels, value);
    case Fact::kWeightType: {
      const auto* type = tensor::find_dtype(static_cast<uint32_t>(value));
      return type != nullptr ? std::string(type->name) : cat("type ", value);
    }
    default: return cat(value);
  }
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
