#include "model/config.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/strings.h"
#include "model/architectures.h"
#include "model/metadata_reader.h"

namespace topknot::model {
namespace {

struct Architecture {
  std::string_view name;
  ModelConfig (*read)(MetadataReader&);  // null: recognised, not offered
  std::string_view remark;
};

// Every architecture string this project has an opinion on.
constexpr std::array kArchitectures = {
    Architecture{"glm-dsa", read_glm_dsa, "GLM-5, 5.1, 5.2, 5.3"},
    Architecture{"deepseek32", read_deepseek32, "DeepSeek-V3.2"},
    Architecture{"deepseek2", read_deepseek2, "DeepSeek V2, V3, R1, Kimi-K2, GLM-4.7-Flash"},
    Architecture{"deepseek4", nullptr, "DeepSeek-V4: another attention, not planned"},
    Architecture{"glm5-next", nullptr, "GLM-5.3-Flash: linear attention layers, not planned"},
    Architecture{"glm4moe", nullptr, "GLM-4.5 to 4.7: grouped-query attention, not MLA"},
    Architecture{"mistral4", nullptr, "not of this family"},
};

Error unknown_architecture(const gguf::ModelFile& file, std::string_view name) {
  std::vector<std::string> offered;
  std::string remark = "it is not known here";
  for (const Architecture& each : kArchitectures) {
    if (each.read != nullptr) offered.emplace_back(each.name);
    if (each.name == name) remark = each.remark;
  }
  std::string list;
  for (const std::string& each : offered) list += cat(list.empty() ? "" : ", ", each);
  return Error{.code = Code::kUnsupported,
               .what = cat("architecture '", printable(name), "' cannot be run"),
               .where = file.path(),
               .why = std::move(remark),
               .fix = cat("use a model whose general.architecture is one of: ", list)};
}

}  // namespace

Result<ModelConfig> read_config(const gguf::ModelFile& file) {
  const gguf::Value* value = file.find_key("general.architecture");
  const auto name = value != nullptr ? value->as_string() : std::nullopt;
  if (!name) {
    return Error{
        .code = Code::kCorrupt,
        .what = "the file does not say what model it holds",
        .where = file.path(),
        .why = value == nullptr ? "general.architecture is absent"
                                : "general.architecture is not a string",
        .fix = "convert the model again, or set --override-kv general.architecture=str:NAME"};
  }
  const auto known = std::find_if(kArchitectures.begin(), kArchitectures.end(),
                                  [&](const Architecture& each) { return each.name == *name; });
  if (known == kArchitectures.end() || known->read == nullptr) {
    return unknown_architecture(file, *name);
  }
  MetadataReader reader(file, std::string(*name));
  ModelConfig config = known->read(reader);
  if (!reader.problems().empty()) {
    std::string why;
    for (const std::string& problem : reader.problems())
      why += cat(why.empty() ? "" : "\n", problem);
    return Error{
        .code = Code::kCorrupt,
        .what = "the model's metadata cannot be used",
        .where = file.path(),
        .why = std::move(why),
        .fix = "convert the model again, or give the value with --override-kv KEY=TYPE:VALUE"};
  }
  config.notes = reader.take_notes();
  return config;
}

std::vector<double> inverse_frequencies(const RopeConfig& rope) {
  const auto half = static_cast<size_t>(rope.dim / 2);
  const auto dim = static_cast<double>(rope.dim);
  std::vector<double> out(half);
  for (size_t i = 0; i < half; ++i) {
    out[i] = std::pow(rope.freq_base, -2.0 * static_cast<double>(i) / dim);
  }
  if (!rope.yarn || rope.yarn->factor <= 1) return out;
  const Yarn& yarn = *rope.yarn;
  // The dimension whose wave turns `beta` times within the original context.
  const auto correction = [&](double beta) {
    constexpr double kTwoPi = 6.283185307179586;
    return dim * std::log(yarn.original_context / (beta * kTwoPi)) / (2 * std::log(rope.freq_base));
  };
  const double low = std::max(std::floor(correction(yarn.beta_fast)), 0.0);
  double high = std::min(std::ceil(correction(yarn.beta_slow)), dim - 1);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < half; ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    out[i] = out[i] * (1 - ramp) + out[i] / yarn.factor * ramp;
  }
  return out;
}

}  // namespace topknot::model
