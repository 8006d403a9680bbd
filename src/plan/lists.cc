#include "plan/lists.h"

#include "attention/indexer/implementations.h"
#include "attention/registry.h"
#include "capability/device_facts.h"
#include "comm/implementations.h"
#include "kvcache/implementations.h"
#include "ops/implementations.h"
#include "plan/operations.h"

namespace topknot::plan {
namespace {

using namespace capability;

OperationList list_of(std::string_view operations, std::span<const Implementation> list) {
  OperationList out{operations, {}};
  for (const Implementation& each : list) out.entries.push_back(entry_of(each));
  return out;
}

OperationList attention_list() {
  OperationList out{"attention", {}};
  for (const Implementation& each : attention::planned_backends()) {
    out.entries.push_back(entry_of(each));
  }
  for (const attention::RegistryEntry& each : attention::registry()) {
    ListEntry entry{.name = each.name};
    if (each.backend == nullptr) {
      entry.absent.push_back(attention::not_built(each));
    } else {
      entry.rules = each.backend->rules;
      entry.description = each.backend->description;
    }
    out.entries.push_back(std::move(entry));
  }
  return out;
}

}  // namespace

std::vector<OperationList> operation_lists() {
  return {attention_list(),
          list_of(kIndexerScores, attention::indexer_implementations()),
          list_of(kTopK, attention::top_k_implementations()),
          list_of(kSlotMap, kvcache::slot_map_implementations()),
          list_of(kCacheWriter, kvcache::cache_writer_implementations()),
          list_of("norms and activations, rope", ops::vector_implementations()),
          list_of("embedding, linear, per-head, experts", ops::product_implementations()),
          list_of(kRouter, ops::router_implementations()),
          list_of(kCollectives, comm::collective_implementations()),
          list_of(kSampling, ops::sampling_implementations())};
}

Facts target_facts(const Target& target) {
  Facts facts = device_facts(target.device);
  if (target.on_host() && target.instructions_known) {
    facts.set(Fact::kInstructions, target.instructions);
  }
  return facts;
}

}  // namespace topknot::plan
