#include "cli/inspection.h"

#include <map>
#include <utility>

#include "base/strings.h"
#include "chat/template.h"
#include "device/cpu/host_facts.h"
#include "model/config.h"
#include "model/vocabulary.h"
#include "model/weights.h"
#include "plan/plan.h"

namespace topknot::cli {
namespace {

using model::ModelConfig;

constexpr size_t kMaxValueBytes = 120;  // of a metadata value in a listing

Json parts_json(const gguf::ModelFile& file) {
  Json parts = Json::array();
  for (const gguf::Part& part : file.parts()) {
    parts.push_back({{"path", json_text(part.path)},
                     {"bytes", part.bytes},
                     {"tensors", part.tensors},
                     {"alignment", part.alignment}});
  }
  return parts;
}

Json types_json(const gguf::ModelFile& file) {
  std::map<tensor::DType, std::pair<uint64_t, uint64_t>> sums;  // tensors, bytes
  for (const gguf::TensorInfo& each : file.tensors()) {
    auto& [tensors, bytes] = sums[each.type];
    ++tensors;
    bytes += each.bytes;
  }
  Json types = Json::array();
  for (const auto& [type, sum] : sums) {
    types.push_back({{"type", tensor::dtype_name(type)},
                     {"tensors", sum.first},
                     {"bytes", sum.second},
                     {"decoded", tensor::dtype_info(type).decoded}});
  }
  return types;
}

Json tensors_json(const gguf::ModelFile& file) {
  Json tensors = Json::array();
  for (const gguf::TensorInfo& each : file.tensors()) {
    Json shape = Json::array();
    for (uint32_t i = 0; i < each.dims; ++i) shape.push_back(each.ne[i]);
    tensors.push_back({{"name", json_text(each.name)},
                       {"type", tensor::dtype_name(each.type)},
                       {"shape", std::move(shape)},
                       {"bytes", each.bytes},
                       {"part", each.part}});
  }
  return tensors;
}

Json keys_json(const gguf::ModelFile& file) {
  Json keys = Json::array();
  for (const gguf::KeyValue& each : file.metadata()) {
    keys.push_back({{"key", json_text(each.key)},
                    {"type", gguf::value_type_name(each.value.type())},
                    {"value", json_text(each.value.to_string(kMaxValueBytes))}});
  }
  return keys;
}

Json rope_json(const model::RopeConfig& rope) {
  Json json = {
      {"dim", rope.dim},
      {"freq_base", rope.freq_base},
      {"flavour", rope.flavour == ops::RopeFlavour::kInterleaved ? "interleaved" : "half-split"}};
  if (rope.yarn) {
    json["yarn_factor"] = rope.yarn->factor;
    json["yarn_original_context"] = rope.yarn->original_context;
  }
  return json;
}

Json config_json(const ModelConfig& config) {
  return {{"layers", config.layers},
          {"mtp_blocks", config.nextn_layers},
          {"hidden", config.hidden},
          {"heads", config.heads},
          {"q_lora_rank", config.q_lora_rank},
          {"kv_lora_rank", config.kv_lora_rank},
          {"qk_nope_head_dim", config.qk_nope_head_dim},
          {"qk_rope_head_dim", config.qk_rope_head_dim},
          {"v_head_dim", config.v_head_dim},
          {"leading_dense_layers", config.leading_dense_layers},
          {"dense_ffn", config.dense_ffn},
          {"experts", config.router.experts},
          {"experts_used", config.router.used},
          {"shared_experts", config.shared_experts},
          {"expert_ffn", config.expert_ffn},
          {"rope", rope_json(config.rope)},
          {"context_length", config.context_length}};
}

// Where the indexer schedule comes from: a key of the file, or the rule for files without one.
std::string schedule_rule(const gguf::ModelFile& file, const ModelConfig& config) {
  for (const char* name : {"types", "top_k_freq", "top_k_frequency"}) {
    const std::string key = cat(config.architecture, ".attention.indexer.", name);
    if (file.find_key(key) != nullptr) return cat("by ", key);
  }
  for (const std::string& note : config.notes) {
    if (note.find(".attention.indexer.types is absent") != std::string::npos) return note;
  }
  return "an indexer in every layer";
}

Json attention_json(const gguf::ModelFile& file, const ModelConfig& config) {
  Json json = {{"sparse", config.indexer.has_value()}, {"reason", config.sparse_reason}};
  if (!config.indexer) return json;
  const model::IndexerConfig& indexer = *config.indexer;
  Json full = Json::array();
  Json shared = Json::array();
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    (config.has_own_indexer(layer) ? full : shared).push_back(layer);
  }
  json["indexer"] = {
      {"topk", indexer.topk},
      {"heads", indexer.heads},
      {"head_dim", indexer.head_dim},
      {"rope_flavour",
       indexer.rope_flavour == ops::RopeFlavour::kInterleaved ? "interleaved" : "half-split"},
      {"full_layers", std::move(full)},
      {"shared_layers", std::move(shared)},
      {"schedule", schedule_rule(file, config)}};
  return json;
}

// What runs it by default, and what a token costs in the cache.
Json plan_json(const plan::Plan& plan) {
  kvcache::CacheShape f32 = plan.cache;
  f32.format = capability::KvFormat::kF32;
  kvcache::CacheShape bf16 = plan.cache;
  bf16.format = capability::KvFormat::kBf16;
  return {{"attention_backend", plan.attention.candidates[*plan.attention.chosen].name},
          {"kernels", plan.kernels},
          {"context", plan.context},
          {"cache_bytes_per_token",
           {{"bf16", bf16.bytes_per_token()}, {"f32", f32.bytes_per_token()}}}};
}

Json chat_template_json(const gguf::ModelFile& file) {
  const auto source = model::read_chat_template(file);
  if (!source) return {{"present", false}};
  Json json = {{"present", true}, {"bytes", source->size()}};
  const auto parsed = chat::Template::parse(*source, "tokenizer.chat_template");
  json["parses"] = parsed.has_value();
  if (!parsed) json["problem"] = json_error(parsed.error());
  return json;
}

Json special_json(const tokenizer::Tokenizer& words) {
  Json special = Json::object();
  const auto add = [&](const char* name, std::optional<int32_t> id) {
    if (id) special[name] = {{"id", *id}, {"text", json_text(words.token_bytes(*id))}};
  };
  add("bos", words.bos());
  add("eos", words.eos());
  add("eot", words.eot());
  add("eom", words.eom());
  add("unk", words.unk());
  add("pad", words.pad());
  return special;
}

// Counts come from the file, so they are shown also when the tokenizer cannot be used.
Json tokenizer_json(const gguf::ModelFile& file, const Result<tokenizer::Tokenizer>& words) {
  const auto find = [&](const char* name) { return file.find_key(cat("tokenizer.ggml.", name)); };
  const auto text = [&](const char* name) -> Json {
    const gguf::Value* value = find(name);
    return value != nullptr ? json_text(value->as_string().value_or("")) : Json();
  };
  const auto count = [&](const char* name) -> Json {
    const gguf::Value* value = find(name);
    const gguf::Array* array = value != nullptr ? value->as_array() : nullptr;
    return array != nullptr ? Json(array->count) : Json();
  };
  Json json = {{"model", text("model")},
               {"pre", text("pre")},
               {"tokens", count("tokens")},
               {"merges", count("merges")}};
  if (words) {
    json["special"] = special_json(*words);
    json["stop_tokens"] = words->stop_ids();
    json["add_bos"] = words->add_bos();
  }
  json["chat_template"] = chat_template_json(file);
  return json;
}

void add_plan(const ModelConfig& config, const model::CheckedTensors& tensors, Json* out,
              Json* refusals) {
  plan::PlanRequest request;
  request.device = "cpu";
  const auto plan =
      plan::make_plan(config, tensors, request, device::machine_of(device::host_facts(), {}));
  if (!plan) {
    refusals->push_back(json_error(plan.error()));
    return;
  }
  if (plan->attention.chosen) (*out)["plan"] = plan_json(*plan);
  if (const Status can = plan::check_runnable(*plan, request); !can) {
    refusals->push_back(json_error(can.error()));
  }
}

// What the file's metadata says, through the same steps that running it takes.
void add_model(const gguf::ModelFile& file, Json* out, Json* refusals) {
  const auto config = model::read_config(file);
  if (!config) {
    refusals->push_back(json_error(config.error()));
    return;
  }
  (*out)["config"] = config_json(*config);
  (*out)["attention"] = attention_json(file, *config);
  Json notes = Json::array();
  for (const std::string& note : config->notes) notes.push_back(json_text(note));
  const auto tensors = model::check_tensors(file, *config);
  if (tensors) {
    for (const std::string& note : tensors->notes) notes.push_back(json_text(note));
    add_plan(*config, *tensors, out, refusals);
  } else {
    refusals->push_back(json_error(tensors.error()));
  }
  (*out)["notes"] = std::move(notes);
}

}  // namespace

Json inspect_model(const gguf::ModelFile& file, const InspectionOptions& options) {
  uint64_t parameters = 0;
  for (const gguf::TensorInfo& each : file.tensors()) parameters += each.elements();
  const auto text = [&](const char* key) -> Json {
    const gguf::Value* value = file.find_key(key);
    return value != nullptr ? json_text(value->as_string().value_or("")) : Json();
  };
  Json out = {{"path", json_text(file.path())},
              {"gguf_version", file.parts().front().version},
              {"bytes", file.total_bytes()},
              {"parts", parts_json(file)},
              {"architecture", text("general.architecture")},
              {"name", text("general.name")},
              {"tensor_count", file.tensors().size()},
              {"parameters", parameters}};
  Json refusals = Json::array();
  add_model(file, &out, &refusals);
  out["types"] = types_json(file);
  const auto words = model::read_tokenizer(file);
  if (!words) refusals.push_back(json_error(words.error()));
  out["tokenizer"] = tokenizer_json(file, words);
  out["runnable"] = refusals.empty();
  out["refusals"] = std::move(refusals);
  if (options.tensors) out["tensors"] = tensors_json(file);
  if (options.keys) out["keys"] = keys_json(file);
  return out;
}

}  // namespace topknot::cli
