// Every operation of a model, each resolved among the implementations there are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "attention/backend_list.h"
#include "capability/rules.h"
#include "kvcache/cache.h"
#include "model/config.h"
#include "model/weights.h"
#include "plan/target.h"
#include "tensor/dtype.h"

namespace topknot::plan {

struct Operation {
  capability::Choice choice;  // its `operation` is the name: "linear Q5_K"
  capability::Facts asked;

  const std::string& name() const { return choice.operation; }
  std::string_view chosen() const;  // empty: nothing can run it
};

// What an operation is, apart from types: the names that plans and prices share.
inline constexpr std::string_view kAttentionPrefill = "attention prefill";
inline constexpr std::string_view kAttentionDecode = "attention decode";
inline constexpr std::string_view kIndexerScores = "indexer scores";
inline constexpr std::string_view kTopK = "top-k";
inline constexpr std::string_view kSlotMap = "position-to-slot map";
inline constexpr std::string_view kCacheWriter = "cache writer";
inline constexpr std::string_view kNorms = "norms and activations";
inline constexpr std::string_view kRope = "rope";
inline constexpr std::string_view kRouter = "router";
inline constexpr std::string_view kSampling = "sampling";
inline constexpr std::string_view kCollectives = "collectives";
// "linear Q5_K", "experts Q4_K"; empty for what is no product.
std::string product_name(model::Use use, tensor::DType type);

struct OperationRequest {
  bool sparse = false;
  kvcache::KvFormat format = kvcache::KvFormat::kBf16;
  capability::ActivationType dtype = capability::ActivationType::kF32;
  const attention::BackendList* backends = nullptr;  // that attention is chosen from
  std::string attention_backend;                     // empty: chosen
  std::string kernels;                               // "auto", or a name of the host's loops
  int64_t heads = 0;                                 // on the rank that has most
  int64_t indexer_workspace_bytes = 0;
};

// In the order of a step. The first of a host's operations decides which inner loops all use.
std::vector<Operation> resolve_operations(const model::ModelConfig& config,
                                          const model::CheckedTensors& tensors,
                                          const OperationRequest& request, const Target& target);

// What a target says of itself: its device, the ranks that share the heads, a host's instructions.
capability::Facts target_facts(const Target& target);

// What attention asks of a backend.
capability::Facts attention_facts(const model::ModelConfig& config, const OperationRequest& request,
                                  const Target& target);

}  // namespace topknot::plan
