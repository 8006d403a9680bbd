#include "plan/lists.h"

#include "attention/indexer/implementations.h"
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

}  // namespace

std::vector<OperationList> operation_lists(const attention::BackendList& backends) {
  return {{"attention", backends.list_entries()},
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

}  // namespace topknot::plan
