#include "plan/memory.h"

#include <algorithm>

#include "base/assert.h"
#include "base/checked_math.h"
#include "base/strings.h"
#include "model/workspace.h"
#include "ops/cpu/cpu_ops.h"
#include "plan/placement.h"

namespace topknot::plan {
namespace {

using model::CheckedTensors;
using model::ModelConfig;

constexpr uint64_t kFloatBytes = 4;

// Widths, ranks and step lengths are bounded (model/config.h, plan.h) so that buffers of a step
// stay far below 64 bits; only caches and sums over ranks may leave them.
uint64_t as_bytes(int64_t bytes) {
  TOPKNOT_ASSERT(bytes >= 0);
  return static_cast<uint64_t>(bytes);
}

struct Weights {
  uint64_t blocks = 0;   // as in the file
  uint64_t vectors = 0;  // widened copies of norms and biases
};

bool is_mlp(const model::UsedTensor& tensor) {
  return tensor.split == model::Split::kFfnRows || tensor.split == model::Split::kFfnColumns;
}

Weights weights_of_rank(const ModelConfig& config, const CheckedTensors& tensors,
                        const std::vector<RankShare>& shares, int rank) {
  const auto ranks = static_cast<int>(shares.size());
  Weights out;
  for (const model::UsedTensor& each : tensors.tensors) {
    const int turned = is_mlp(each) ? turned_rank(rank, each.layer, ranks) : rank;
    out.blocks +=
        share_of_tensor(each, config, tensors.vocab, shares[static_cast<size_t>(turned)]).bytes;
    if (each.use == model::Use::kVector) out.vectors += each.info->elements() * kFloatBytes;
  }
  return out;
}

std::vector<RankShare> shares_of(const ModelConfig& config, const CheckedTensors& tensors,
                                 int ranks) {
  const SplitUnits units = split_units(config, tensors);
  std::vector<RankShare> shares;
  for (int rank = 0; rank < ranks; ++rank) {
    shares.push_back(share_of_rank(config, tensors.vocab, units, ranks, rank));
  }
  return shares;
}

// Buffers hold the largest share of an MLP, since every rank has it in some layer.
RankShare widest(RankShare share, const RankShare& first) {
  share.dense_ffn = first.dense_ffn;
  share.expert_ffn = first.expert_ffn;
  share.shared_ffn = first.shared_ffn;
  return share;
}

// Buffers of a step: those of the forward pass, of the operations, of the indexer and of attention,
// and the hidden states and logits that the engine keeps.
uint64_t workspace_of_rank(const ModelConfig& rank, const CheckedTensors& tensors,
                           const MemoryRequest& request, int threads) {
  const model::StepLimits limits{request.ubatch, request.context};
  int64_t bytes = model::step_sizes(rank, request.sparse, limits).bytes();
  if (!request.reference) {
    bytes += ops::cpu_ops_workspace_bytes(model::operation_limits(rank, request.ubatch), threads);
  }
  if (request.sparse && !request.reference) {
    bytes += attention::indexer_workspace_bytes(
        indexer_shape(rank, request.ubatch, request.context), threads);
  }
  if (request.attention_backend != nullptr) {
    bytes += request.attention_backend->workspace_bytes(
        {rank.heads, rank.kv_lora_rank, rank.qk_rope_head_dim}, threads);
  }
  bytes += (request.ubatch * rank.hidden + tensors.vocab) * static_cast<int64_t>(kFloatBytes);
  return as_bytes(bytes);
}

std::optional<uint64_t> usable_of(const std::optional<uint64_t>& usable,
                                  const std::optional<uint64_t>& all, MemoryPlan* plan) {
  if (usable || !all) return usable;
  plan->usable_is_total = true;
  return all;
}

// Pages are whole, for each sequence.
uint64_t cache_bytes(const MemoryRequest& request) {
  const int64_t pages = ceil_div<int64_t>(request.context, kvcache::kPageTokens);
  const uint64_t slots =
      saturating_mul(as_bytes(pages * kvcache::kPageTokens), as_bytes(request.sequences));
  return saturating_mul(slots, as_bytes(request.cache.bytes_per_token()));
}

}  // namespace

uint64_t MemoryUse::total() const {
  uint64_t sum = 0;
  for (const uint64_t each : {weights, cache, workspace, staging, reserve}) {
    sum = saturating_add(sum, each);
  }
  return sum;
}

bool MemoryPlan::countable() const {
  return std::all_of(devices.begin(), devices.end(),
                     [](const MemoryUse& each) { return each.total() < kTooManyBytes; });
}

bool MemoryPlan::fits() const {
  return std::all_of(devices.begin(), devices.end(),
                     [](const MemoryUse& each) { return each.fits(); });
}

attention::IndexerShape indexer_shape(const ModelConfig& config, int64_t ubatch, int64_t context) {
  attention::IndexerShape shape;
  shape.heads = config.indexer->heads;
  shape.head_dim = config.indexer->head_dim;
  shape.topk = std::min(config.indexer->topk, context);
  shape.max_tokens = ubatch;
  shape.max_context = context;
  return shape;
}

MemoryPlan measure_memory(const ModelConfig& config, const CheckedTensors& tensors,
                          const MemoryRequest& request, const Target& target) {
  MemoryPlan plan;
  plan.bytes_per_token = request.cache.bytes_per_token();
  MemoryUse host;
  host.device = "host";
  host.usable = usable_of(target.host.memory_usable_bytes, target.host.memory_bytes, &plan);
  const std::vector<RankShare> shares = shares_of(config, tensors, target.ranks);
  const int threads = target.on_host() ? request.threads : 1;
  for (int rank = 0; rank < target.ranks; ++rank) {
    const RankShare share = widest(shares[static_cast<size_t>(rank)], shares.front());
    const Weights weights = weights_of_rank(config, tensors, shares, rank);
    MemoryUse use;
    use.device = target.device_name(rank);
    use.weights = weights.blocks + weights.vectors;
    use.cache = cache_bytes(request);
    use.workspace = workspace_of_rank(config_of_rank(config, share), tensors, request, threads);
    host.reserve += kProgramBytes;
    if (target.on_host()) {
      host.weights = saturating_add(host.weights, use.weights);
      host.cache = saturating_add(host.cache, use.cache);
      host.workspace = saturating_add(host.workspace, use.workspace);
      host.reserve += kStackBytesPerThread * static_cast<uint64_t>(threads);
      continue;
    }
    use.usable = usable_of(target.device.memory_usable_bytes, target.device.memory_bytes, &plan);
    use.reserve = kCudaReserveBytes;
    host.staging += kStagingBytesPerRank;
    if (target.device.shares_host_memory.value_or(false)) {  // one memory: all of it on the device
      use.staging = kStagingBytesPerRank;
      use.reserve += kProgramBytes;
    }
    plan.devices.push_back(std::move(use));
  }
  if (target.on_host() || !target.device.shares_host_memory.value_or(false)) {
    plan.devices.push_back(std::move(host));
  }
  return plan;
}

int64_t largest_context(const ModelConfig& config, const CheckedTensors& tensors,
                        MemoryRequest request, const Target& target, int64_t most) {
  const auto fits = [&](int64_t context) {
    request.context = context;
    return measure_memory(config, tensors, request, target).fits();
  };
  if (fits(most)) return most;
  int64_t good = 0;  // pages
  int64_t bad = ceil_div<int64_t>(most, kvcache::kPageTokens);
  while (bad - good > 1) {
    const int64_t middle = good + (bad - good) / 2;
    (fits(middle * kvcache::kPageTokens) ? good : bad) = middle;
  }
  return good * kvcache::kPageTokens;
}

}  // namespace topknot::plan
