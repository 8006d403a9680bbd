#include "plan/other_engines.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "base/try.h"
#include "plan/placement.h"

namespace topknot::plan {
namespace {

using namespace capability;

// What only sparse models have.
constexpr std::string_view kIndexerOperation = "indexer_scores";
constexpr std::string_view kAttentionOperation = "attention";

constexpr std::pair<std::string_view, ActivationType> kActivations[] = {
    {"auto", ActivationType::kBf16},  {"bf16", ActivationType::kBf16},
    {"f32", ActivationType::kF32},    {"f16", ActivationType::kF16},
    {"fp16", ActivationType::kF16},   {"bfloat16", ActivationType::kBf16},
    {"half", ActivationType::kF16},   {"float16", ActivationType::kF16},
    {"float32", ActivationType::kF32}};

constexpr std::pair<std::string_view, KvFormat> kRows[] = {
    {"f32", KvFormat::kF32},      {"bf16", KvFormat::kBf16},       {"f16", KvFormat::kF16},
    {"fp8_ds", KvFormat::kFp8Ds}, {"q8_0", KvFormat::kQ8_0},       {"fp8_e4m3", KvFormat::kFp8E4m3},
    {"fp16", KvFormat::kF16},     {"float16", KvFormat::kF16},     {"bfloat16", KvFormat::kBf16},
    {"float32", KvFormat::kF32},  {"fp8_ds_mla", KvFormat::kFp8Ds}};

template <class T, size_t N>
Result<T> named(const std::pair<std::string_view, T> (&table)[N], const std::string& name,
                const char* option) {
  std::vector<std::string> names;
  for (const auto& [each, value] : table) {
    if (each == name) return value;
    names.emplace_back(each);
  }
  const auto near = nearest(name, names, 1);
  return Error{.code = Code::kInvalidArgument,
               .what = cat(option, " '", printable(name), "' is not known"),
               .fix = cat(near.empty() ? std::string() : cat("did you mean '", near[0], "'? "),
                          fmt::format("names are {}", fmt::join(names, ", ")))};
}

KvFormat rows_of(ActivationType dtype) {
  switch (dtype) {
    case ActivationType::kF32: return KvFormat::kF32;
    case ActivationType::kBf16: return KvFormat::kBf16;
    case ActivationType::kF16: return KvFormat::kF16;
  }
  return KvFormat::kBf16;
}

Architecture architecture_of(const std::string& name) {
  const auto names = fact_value_names(Fact::kArchitecture);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return Architecture::kOther;
  return static_cast<Architecture>(found - names.begin());
}

Result<Facts> facts_of(const model::ModelConfig& config, const model::CheckedTensors& tensors,
                       const PlanRequest& request, const Target& target) {
  OperationRequest operation;
  operation.sparse = config.indexer.has_value() && !request.dense;
  TOPKNOT_TRY(operation.dtype, named(kActivations, request.dtype, "--dtype"));
  operation.format = rows_of(operation.dtype);
  if (request.kv_cache_dtype != "auto") {
    TOPKNOT_TRY(operation.format, named(kRows, request.kv_cache_dtype, "--kv-cache-dtype"));
  }
  const SplitUnits units = split_units(config, tensors);
  TOPKNOT_CHECK_OK(check_split(config, units, request.ranks));
  operation.heads = share_of_rank(config, tensors.vocab, units, request.ranks, 0).heads;
  Facts facts = attention_facts(config, operation, target);
  facts.set(Fact::kArchitecture, architecture_of(config.architecture))
      .set(Fact::kWeights, WeightFormat::kGguf)
      .set(Fact::kTensorRanks, request.ranks)
      .set(Fact::kContextRanks, 1)
      .set(Fact::kSequences, request.sequences);
  if (operation.sparse) facts.set(Fact::kIndexRopeDim, config.indexer->rope_dim);
  return facts;
}

}  // namespace

Result<CatalogAnswer> ask_catalog(const Catalog& catalog, const model::ModelConfig& config,
                                  const model::CheckedTensors& tensors, const PlanRequest& request,
                                  const device::Machine& machine) {
  TOPKNOT_CHECK_OK(check_ranges(request));
  CatalogAnswer answer;
  TOPKNOT_TRY(answer.target, choose_target(machine, request.device, request.ranks));
  TOPKNOT_TRY(answer.asked, facts_of(config, tensors, request, answer.target));
  const bool sparse =
      answer.asked[Fact::kSelection] == std::optional<int64_t>(int64_t(Selection::kSparse));
  for (const CatalogOperation& each : catalog.operations) {
    if (each.name == kIndexerOperation && !sparse) continue;
    const std::string& name = request.attention_backend;
    const bool forced = each.name == kAttentionOperation && !name.empty();
    answer.choices.push_back(evaluate(each, answer.asked, forced ? name : std::string_view()));
    if (!forced) continue;
    const auto& candidates = answer.choices.back().candidates;
    const bool known = std::any_of(candidates.begin(), candidates.end(),
                                   [&](const Candidate& one) { return one.name == name; });
    if (!known) return refused(answer.choices.back(), answer.asked, name);
  }
  return answer;
}

}  // namespace topknot::plan
