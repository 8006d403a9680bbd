// A plan as one JSON object; the schema is in docs/plan.md.
#include "base/strings.h"
#include "cli/plan_report.h"

namespace topknot::cli {
namespace {

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json attention_json(const plan::Plan& plan, const PlannedModel& model) {
  const auto chosen = [&](std::string_view name) -> Json {
    for (const plan::Operation& each : plan.operations) {
      if (each.name() == name && each.choice.chosen) return std::string(each.chosen());
    }
    return {};
  };
  return {{"selection", plan.sparse ? "sparse" : "dense"},
          {"reason", plan.attention_reason},
          {"index_topk", plan.sparse ? Json(model.config.indexer->topk) : Json()},
          {"prefill", chosen(plan::kAttentionPrefill)},
          {"decode", chosen(plan::kAttentionDecode)},
          {"kv_cache_dtype", capability::kv_format_name(plan.cache.format)},
          {"dtype", capability::activation_name(plan.dtype)}};
}

Json memory_json(const plan::Plan& plan) {
  Json devices = Json::array();
  for (const plan::MemoryUse& each : plan.memory.devices) {
    devices.push_back({{"device", each.device},
                       {"weights_bytes", each.weights},
                       {"cache_bytes", each.cache},
                       {"workspace_bytes", each.workspace},
                       {"staging_bytes", each.staging},
                       {"reserve_bytes", each.reserve},
                       {"total_bytes", each.total()},
                       {"usable_bytes", or_null(each.usable)},
                       {"fits", each.usable ? Json(each.fits()) : Json()}});
  }
  Json remedies = Json::array();
  for (const plan::Remedy& each : plan.memory.remedies) {
    remedies.push_back({{"change", each.change},
                        {"option", each.option},
                        {"detail", each.detail},
                        {"enough", each.enough}});
  }
  return {{"fits", plan.memory.fits()},
          {"context", plan.context},
          {"sequences", plan.sequences},
          {"ubatch", plan.ubatch},
          {"largest_context", plan.memory.largest_context},
          {"cache_bytes_per_token", plan.memory.bytes_per_token},
          {"devices", std::move(devices)},
          {"remedies", std::move(remedies)}};
}

Json token_json(const plan::TokenPrice& price) {
  Json parts = Json::array();
  for (const plan::OperationPrice& each : price.parts) {
    parts.push_back({{"operation", each.operation},
                     {"bytes", each.bytes},
                     {"operations", each.operations},
                     {"seconds", or_null(each.seconds)}});
  }
  return {{"depth", price.depth},
          {"bytes", price.bytes},
          {"operations", price.operations},
          {"seconds", or_null(price.seconds)},
          {"tokens_per_second",
           price.seconds && *price.seconds > 0 ? Json(1 / *price.seconds) : Json()},
          {"parts", std::move(parts)}};
}

Json price_json(const plan::Price& price) {
  Json json = {{"decode", Json::array()}, {"prefill", Json::array()}};
  for (const auto& each : price.decode) json["decode"].push_back(token_json(each));
  for (const auto& each : price.prefill) json["prefill"].push_back(token_json(each));
  json["prefill_ubatch"] = price.ubatch;
  json["load"] = {{"bytes", price.load_bytes}, {"seconds", or_null(price.load_seconds)}};
  json["unknown"] = price.unknown;
  return json;
}

}  // namespace

Json model_json(const PlannedModel& model) {
  const model::ModelConfig& config = model.config;
  return {{"name", json_text(config.name)},
          {"architecture", config.architecture},
          {"bytes", model.file_bytes},
          {"layers", config.layers},
          {"trained_context", config.context_length}};
}

Json machine_json(const plan::Target& target, const PlannedModel& model) {
  return {{"name", json_text(model.machine.name)},
          {"device", target.device_name(0)},
          {"device_name", json_text(target.device.name)},
          {"sm", or_null(target.device.sm)},
          {"tensor_parallel_size", target.ranks}};
}

Json refusals_json(const std::vector<capability::Refusal>& refusals) {
  Json out = Json::array();
  for (const capability::Refusal& each : refusals) {
    out.push_back({{"what", each.what},
                   {"needed", each.needed},
                   {"found", each.found},
                   {"because", each.because},
                   {"remedy", each.remedy}});
  }
  return out;
}

Json operation_json(const plan::Operation& operation) {
  Json candidates = Json::array();
  for (const capability::Candidate& each : operation.choice.candidates) {
    candidates.push_back({{"name", each.name}, {"refusals", refusals_json(each.refusals)}});
  }
  const bool chosen = operation.choice.chosen.has_value();
  return {{"operation", operation.name()},
          {"chosen", chosen ? Json(std::string(operation.chosen())) : Json()},
          {"asked", operation.asked.to_string()},
          {"candidates", std::move(candidates)}};
}

Json plan_json(const plan::Plan& plan, const PlannedModel& model) {
  Json operations = Json::array();
  for (const plan::Operation& each : plan.operations) operations.push_back(operation_json(each));
  Json notes = Json::array();
  for (const std::string& each : plan.notes) notes.push_back(json_text(each));
  return {{"complete", plan.complete()},         {"fits", plan.memory.fits()},
          {"model", model_json(model)},          {"machine", machine_json(plan.target, model)},
          {"operations", std::move(operations)}, {"attention", attention_json(plan, model)},
          {"memory", memory_json(plan)},         {"price", price_json(plan.price)},
          {"notes", std::move(notes)},           {"warnings", plan.warnings}};
}

}  // namespace topknot::cli
