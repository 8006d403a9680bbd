#include "plan/operations.h"

#include <algorithm>

#include "attention/indexer/implementations.h"
#include "base/strings.h"
#include "capability/device_facts.h"
#include "comm/implementations.h"
#include "kvcache/implementations.h"
#include "ops/implementations.h"

namespace topknot::plan {
namespace {

using namespace capability;
using model::Use;

class Resolver {
 public:
  Resolver(const model::ModelConfig& config, const model::CheckedTensors& tensors,
           const OperationRequest& request, const Target& target)
      : config_(config),
        tensors_(tensors),
        request_(request),
        target_(target),
        device_(target_facts(target)) {
    device_.set(Fact::kDtype, request.dtype);
    if (request.kernels != "auto") kernels_ = request.kernels;
  }

  std::vector<Operation> resolve() {
    // The inner loops that the first operation takes are those of all: a step runs on one set.
    host_loops(kNorms, ops::vector_implementations(), device_);
    if (target_.on_host()) kernels_ = out_.front().chosen();
    add_products();
    host_loops(kRope, ops::vector_implementations(), device_);
    add(kCacheWriter, kvcache::cache_writer_implementations(), with_format());
    if (request_.sparse) add_indexer();
    add_attention(kAttentionPrefill);
    add_attention(kAttentionDecode);
    if (config_.router.experts > 0) host_loops(kRouter, ops::router_implementations(), device_);
    if (target_.ranks > 1) add(kCollectives, comm::collective_implementations(), device_);
    add(kSampling, ops::sampling_implementations(), device_);
    return std::move(out_);
  }

 private:
  using List = std::span<const Implementation>;

  void add(std::string_view name, List list, const Facts& asked, std::string_view forced = {}) {
    out_.push_back({choose(std::string(name), list, asked, forced), asked});
  }
  void host_loops(std::string_view name, List list, const Facts& asked) {
    add(name, list, asked, kernels_);
  }

  Facts with_format() const { return Facts(device_).set(Fact::kKvFormat, request_.format); }

  void add_products() {
    std::vector<std::string> names;
    const auto product = [&](Use use, tensor::DType type) {
      std::string name = product_name(use, type);
      if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) return;
      host_loops(name, ops::product_implementations(), Facts(device_).set(Fact::kWeightType, type));
      names.push_back(std::move(name));
    };
    for (const model::UsedTensor& each : tensors_.tensors) {
      product(each.use, each.info->type);
      if (each.use == Use::kEmbedding && tensors_.tied_output) {
        product(Use::kLinear, each.info->type);
      }
    }
  }

  void add_indexer() {
    const model::IndexerConfig& indexer = *config_.indexer;
    const Facts asked = with_format()
                            .set(Fact::kIndexHeads, indexer.heads)
                            .set(Fact::kIndexHeadDim, indexer.head_dim)
                            .set(Fact::kIndexRopeDim, indexer.rope_dim)
                            .set(Fact::kTopk, indexer.topk)
                            .set(Fact::kWorkspaceBytes, request_.indexer_workspace_bytes);
    host_loops(kIndexerScores, attention::indexer_implementations(), asked);
    const Facts select = Facts(device_).set(Fact::kTopk, indexer.topk);
    add(kTopK, attention::top_k_implementations(), select);
    add(kSlotMap, kvcache::slot_map_implementations(), select);
  }

  void add_attention(std::string_view name) {
    const Facts asked = attention_facts(config_, request_, target_);
    Choice choice = request_.backends->select(asked, request_.attention_backend);
    choice.operation = cat(request_.sparse ? "sparse " : "dense ", "MLA ", name);
    out_.push_back({std::move(choice), asked});
    out_.back().choice.operation = std::string(name);
  }

  const model::ModelConfig& config_;
  const model::CheckedTensors& tensors_;
  const OperationRequest& request_;
  const Target& target_;
  Facts device_;
  std::string kernels_;  // forced name of the host's loops; empty: none
  std::vector<Operation> out_;
};

}  // namespace

std::string_view Operation::chosen() const {
  if (!choice.chosen) return {};
  return choice.candidates[*choice.chosen].name;
}

std::string product_name(Use use, tensor::DType type) {
  std::string_view what;
  switch (use) {
    case Use::kVector: return {};
    case Use::kEmbedding: what = "embedding"; break;
    case Use::kLinear:
    case Use::kScoring:
    case Use::kRouter: what = "linear"; break;
    case Use::kHeads: what = "per-head"; break;
    case Use::kFusedHeads: what = "fused per-head"; break;
    case Use::kExperts: what = "experts"; break;
  }
  return cat(what, " ", tensor::dtype_name(type));
}

std::vector<Operation> resolve_operations(const model::ModelConfig& config,
                                          const model::CheckedTensors& tensors,
                                          const OperationRequest& request, const Target& target) {
  return Resolver(config, tensors, request, target).resolve();
}

Facts target_facts(const Target& target) {
  Facts facts = capability::device_facts(target.device);
  if (target.ranks > 1) facts.set(Fact::kTensorRanks, target.ranks);
  if (target.on_host() && target.instructions_known) {
    facts.set(Fact::kInstructions, target.instructions);
  }
  return facts;
}

Facts attention_facts(const model::ModelConfig& config, const OperationRequest& request,
                      const Target& target) {
  Facts facts = target_facts(target);
  facts.set(Fact::kSelection, request.sparse ? Selection::kSparse : Selection::kDense)
      .set(Fact::kHeads, request.heads)
      .set(Fact::kKvLoraRank, config.kv_lora_rank)
      .set(Fact::kQkRopeHeadDim, config.qk_rope_head_dim)
      .set(Fact::kQkNopeHeadDim, config.qk_nope_head_dim)
      .set(Fact::kHeadSize, config.latent_width())
      .set(Fact::kKvFormat, request.format)
      .set(Fact::kDtype, request.dtype)
      .set(Fact::kPageTokens, kvcache::kPageTokens);
  if (request.sparse) {
    facts.set(Fact::kTopk, config.indexer->topk)
        .set(Fact::kIndexHeads, config.indexer->heads)
        .set(Fact::kIndexHeadDim, config.indexer->head_dim);
  }
  return facts;
}

}  // namespace topknot::plan
