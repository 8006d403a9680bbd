// Runs one sequence on a plan: the pieces a plan names, put together, and steps over a paged cache.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kvcache/cache.h"
#include "model/forward.h"
#include "plan/plan.h"
#include "topknot/error.h"

namespace topknot::engine {

class Runner {
 public:
  // `config` and `weights` must outlive the runner.
  static Result<std::unique_ptr<Runner>> create(const model::ModelConfig& config,
                                                const model::Weights& weights,
                                                const plan::Plan& plan);

  // Tokens whose cache rows are there.
  const std::vector<int32_t>& tokens() const { return tokens_; }
  int64_t context() const { return plan_.context; }
  int64_t ubatch() const { return plan_.ubatch; }

  // Keeps the first `count` tokens.
  void truncate(size_t count);

  enum class Want : uint8_t { kNothing, kLast, kAll };
  // Appends at most ubatch() tokens, which must fit in the context, and computes the final hidden
  // states that are wanted. After an error the tokens are not there.
  Result<model::StepStats> step(std::span<const int32_t> ids, Want want);
  // Logits [vocab] of row `row` of those hidden states.
  std::span<const float> logits(int64_t row);

  // Of the scratch of a step; the cache is beside it.
  int64_t workspace_bytes() const { return forward_->workspace_bytes(); }

 private:
  Runner(const model::ModelConfig& config, const model::Weights& weights, const plan::Plan& plan,
         kvcache::Cache cache);
  Status prepare(const model::Weights& weights);

  const model::ModelConfig& config_;
  plan::Plan plan_;
  ThreadPool pool_;
  std::unique_ptr<ops::Ops> ops_;
  std::unique_ptr<attention::Attention> attention_;
  std::unique_ptr<attention::Indexer> indexer_;
  std::unique_ptr<model::ForwardPass> forward_;
  kvcache::Cache cache_;
  kvcache::BlockTable table_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> positions_, requests_, slots_, rows_;
  std::vector<float> hidden_;  // [ubatch, hidden]
  std::vector<float> logits_;  // [vocab]
};

}  // namespace topknot::engine
