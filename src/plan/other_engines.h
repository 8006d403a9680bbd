// What a model on a machine asks of another engine, and what a catalogue says that this engine
// would do (capability/catalog.h).
#pragma once

#include <vector>

#include "capability/catalog.h"
#include "plan/plan.h"

namespace topknot::plan {

struct CatalogAnswer {
  Target target;
  capability::Facts asked;
  std::vector<capability::Choice> choices;  // one for each of its operations that the model has
};

// Of `request`: device, ranks, sequences, dense, attention_backend (a name of the catalogue), dtype
// and kv_cache_dtype, here in any precision that an engine may have. `auto` is what such engines
// make of it: bf16 activations, and rows of the activations' type. Pages have 64 tokens; weights
// are a GGUF file's. An Error is about what was asked, as for make_plan().
Result<CatalogAnswer> ask_catalog(const capability::Catalog& catalog,
                                  const model::ModelConfig& config,
                                  const model::CheckedTensors& tensors, const PlanRequest& request,
                                  const device::Machine& machine);

}  // namespace topknot::plan
