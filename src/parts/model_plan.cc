// include/topknot/plan.h over plan/ and attention/.
#include <algorithm>
#include <array>
#include <utility>

#include "attention/libraries.h"
#include "attention/registry.h"
#include "base/strings.h"
#include "base/try.h"
#include "capability/rules.h"
#include "device/machine.h"
#include "gguf/model_file.h"
#include "plan/plan.h"
#include "topknot/plan.h"

namespace topknot {
namespace {

using capability::Fact;
using capability::Facts;

// GPUs are asked only when one is meant: that makes a context on each of them.
Result<device::Machine> find_machine(const std::string& name, const std::string& device) {
  if (!name.empty()) return device::read_machine(name);
  if (device.starts_with("cuda")) return device::this_machine();
  return device::machine_of(device::host_facts(), {});
}

PlanChoice plain(const capability::Choice& choice, const Facts& asked) {
  PlanChoice out;
  out.operation = choice.operation;
  if (choice.chosen) out.chosen = choice.candidates[*choice.chosen].name;
  for (const capability::Candidate& each : choice.candidates) {
    PlanCandidate& candidate = out.candidates.emplace_back();
    candidate.name = each.name;
    for (const capability::Refusal& r : each.refusals) {
      candidate.refusals.push_back({r.what, r.needed, r.found, r.because, r.remedy});
    }
  }
  out.asked = asked.to_string();
  out.explanation = capability::explain(choice);
  return out;
}

PlanMemory plain(const plan::MemoryUse& use) {
  return {.device = use.device,
          .weights_bytes = use.weights,
          .cache_bytes = use.cache,
          .workspace_bytes = use.workspace,
          .staging_bytes = use.staging,
          .reserve_bytes = use.reserve,
          .total_bytes = use.total(),
          .usable_bytes = use.usable,
          .fits = use.fits()};
}

std::vector<PlanTokenPrice> plain(const std::vector<plan::TokenPrice>& prices) {
  std::vector<PlanTokenPrice> out;
  for (const plan::TokenPrice& each : prices) {
    PlanTokenPrice price{each.depth, each.bytes, each.operations, each.seconds, {}};
    for (const plan::OperationPrice& part : each.parts) {
      price.parts.push_back({part.operation, part.bytes, part.operations, part.seconds});
    }
    out.push_back(std::move(price));
  }
  return out;
}

void add_memory(const plan::MemoryPlan& memory, ModelPlan* out) {
  out->fits = memory.fits();
  out->largest_context = memory.largest_context;
  out->cache_bytes_per_token = memory.bytes_per_token;
  for (const plan::MemoryUse& each : memory.devices) out->memory.push_back(plain(each));
  for (const plan::Remedy& each : memory.remedies) {
    out->remedies.push_back({each.change, each.option, each.detail, each.enough});
  }
}

ModelPlan plain(const plan::Plan& plan, const model::ModelConfig& config,
                const std::string& machine_name) {
  ModelPlan out;
  out.complete = plan.complete();
  out.model_name = config.name;
  out.architecture = config.architecture;
  out.machine_name = machine_name;
  out.device = plan.target.device_name(0);
  out.device_name = plan.target.device.name;
  out.sparse = plan.sparse;
  out.attention_reason = plan.attention_reason;
  out.index_topk = plan.sparse ? config.indexer->topk : 0;
  out.kv_cache_dtype = capability::kv_format_name(plan.cache.format);
  out.dtype = capability::activation_name(plan.dtype);
  out.kernels = plan.kernels;
  out.threads = plan.threads;
  for (const plan::Operation& each : plan.operations) {
    out.operations.push_back(plain(each.choice, each.asked));
  }
  out.context = plan.context;
  out.sequences = plan.sequences;
  out.ubatch = plan.ubatch;
  add_memory(plan.memory, &out);
  out.decode = plain(plan.price.decode);
  out.prefill = plain(plan.price.prefill);
  out.load_bytes = plan.price.load_bytes;
  out.load_seconds = plan.price.load_seconds;
  out.unknown = plan.price.unknown;
  out.warnings = plan.warnings;
  return out;
}

plan::PlanRequest request_of(const PlanOptions& options) {
  plan::PlanRequest request;
  request.dtype = options.dtype;
  request.kv_cache_dtype = options.kv_cache_dtype;
  request.attention_backend = options.attention_backend;
  request.kernels = options.kernels;
  request.device = options.device;
  request.dense = options.dense;
  request.context = options.context;
  request.sequences = options.sequences;
  request.ranks = options.tensor_parallel_size;
  request.ubatch = options.ubatch;
  request.threads = options.threads;
  request.disk_bytes_per_second = options.disk_bytes_per_second;
  return request;
}

// The value of a fact by its name.
Result<int64_t> named_value(Fact fact, const std::string& name) {
  const auto known = capability::fact_value_names(fact);
  const auto found = std::find(known.begin(), known.end(), name);
  if (found != known.end()) return found - known.begin();
  const std::vector<std::string> names(known.begin(), known.end());
  const auto near = nearest(name, names, 1);
  return Error{
      .code = Code::kInvalidArgument,
      .what = cat("the ", capability::fact_name(fact), " '", printable(name), "' is not known"),
      .where = "AttentionFacts",
      .why = fmt::format("it is one of {}", fmt::join(names, ", ")),
      .fix = near.empty() ? "give one of these" : cat("did you mean '", near[0], "'?")};
}

Result<Facts> attention_facts(const AttentionFacts& stated, const plan::Target& target) {
  Facts facts = plan::target_facts(target);
  facts.set(Fact::kSelection,
            stated.dense ? capability::Selection::kDense : capability::Selection::kSparse);
  TOPKNOT_TRY(const int64_t format, named_value(Fact::kKvFormat, stated.kv_format));
  TOPKNOT_TRY(const int64_t dtype, named_value(Fact::kDtype, stated.dtype));
  facts.set(Fact::kKvFormat, format).set(Fact::kDtype, dtype);
  const std::array<std::pair<Fact, std::optional<int64_t>>, 8> numbers = {{
      {Fact::kHeads, stated.heads},
      {Fact::kKvLoraRank, stated.kv_lora_rank},
      {Fact::kQkRopeHeadDim, stated.qk_rope_head_dim},
      {Fact::kQkNopeHeadDim, stated.qk_nope_head_dim},
      {Fact::kTopk, stated.topk},
      {Fact::kIndexHeads, stated.index_n_heads},
      {Fact::kIndexHeadDim, stated.index_head_dim},
      {Fact::kPageTokens, stated.page_tokens},
  }};
  for (const auto& [fact, value] : numbers) {
    if (!value) continue;
    if (*value < 1 || *value > kMaxAttentionFact) {
      return Error{.code = Code::kOutOfRange,
                   .what = cat(capability::fact_name(fact), " ", *value, " is out of range"),
                   .where = "AttentionFacts",
                   .why = cat("needed: 1 to ", kMaxAttentionFact),
                   .fix = "leave out what is not known"};
    }
    facts.set(fact, *value);
  }
  if (stated.kv_lora_rank && stated.qk_rope_head_dim) {
    facts.set(Fact::kHeadSize, *stated.kv_lora_rank + *stated.qk_rope_head_dim);
  }
  return facts;
}

}  // namespace

Result<ModelPlan> plan_model(const PlanOptions& options) {
  std::vector<gguf::Override> overrides;
  for (const std::string& text : options.override_kv) {
    TOPKNOT_TRY(gguf::Override parsed, gguf::Override::parse(text));
    overrides.push_back(std::move(parsed));
  }
  plan::PlanRequest request = request_of(options);
  TOPKNOT_TRY(request.backends, attention::backends_with(options.backend_libraries));
  TOPKNOT_TRY(const device::Machine machine, find_machine(options.machine, options.device));
  TOPKNOT_TRY(const gguf::ModelFile file, gguf::ModelFile::open(options.model, overrides));
  TOPKNOT_TRY(const model::ModelConfig config, model::read_config(file));
  TOPKNOT_TRY(const model::CheckedTensors tensors, model::check_tensors(file, config));
  TOPKNOT_TRY(const plan::Plan plan, plan::make_plan(config, tensors, request, machine));
  ModelPlan out = plain(plan, config, machine.name);
  for (const auto* list : {&config.notes, &tensors.notes, &plan.notes}) {
    out.notes.insert(out.notes.end(), list->begin(), list->end());
  }
  return out;
}

Result<PlanChoice> select_attention_backend(const AttentionFacts& facts,
                                            const std::string& forced) {
  TOPKNOT_TRY(const device::Machine machine, find_machine(facts.machine, facts.device));
  TOPKNOT_TRY(const plan::Target target, plan::choose_target(machine, facts.device, 1));
  TOPKNOT_TRY(const Facts asked, attention_facts(facts, target));
  const capability::Choice choice = attention::select_backend(asked, forced);
  const auto is_forced = [&](const capability::Candidate& each) { return each.name == forced; };
  if (!forced.empty() &&
      std::none_of(choice.candidates.begin(), choice.candidates.end(), is_forced)) {
    return capability::refused(choice, asked, forced);
  }
  return plain(choice, asked);
}

}  // namespace topknot
