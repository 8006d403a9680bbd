#include "engine/runner.h"

#include <numeric>

#include "base/assert.h"
#include "base/try.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/reference/reference_ops.h"

namespace topknot::engine {

Result<std::unique_ptr<Runner>> Runner::create(const model::ModelConfig& config,
                                               const model::Weights& weights,
                                               const plan::Plan& plan) {
  TOPKNOT_TRY(kvcache::Cache cache, kvcache::Cache::create(plan.cache, plan.context));
  std::unique_ptr<Runner> runner(new Runner(config, weights, plan, std::move(cache)));
  TOPKNOT_CHECK_OK(runner->prepare(weights));
  return runner;
}

Runner::Runner(const model::ModelConfig& config, const model::Weights& weights,
               const plan::Plan& plan, kvcache::Cache cache)
    : config_(config), plan_(plan), pool_(plan.threads), cache_(std::move(cache)), table_(&cache_) {
  hidden_.resize(static_cast<size_t>(plan.ubatch * config.hidden));
  logits_.resize(static_cast<size_t>(weights.output.out));
}

Status Runner::prepare(const model::Weights& weights) {
  const bool reference = plan_.kernels == "reference";
  const ops::Kernels* kernels =
      reference ? ops::available_kernels().front() : ops::find_kernels(plan_.kernels);
  TOPKNOT_ASSERT(kernels != nullptr);
  const attention::Resources host{.pool = &pool_, .kernels = kernels};
  ops_ = reference ? ops::make_reference_ops() : ops::make_cpu_ops(*kernels, &pool_);
  TOPKNOT_TRY(attention_,
              plan_.attention_backend->create(
                  {config_.heads, config_.kv_lora_rank, config_.qk_rope_head_dim}, host));
  if (plan_.sparse) {
    const attention::IndexerShape shape = plan::indexer_shape(config_, plan_.ubatch, plan_.context);
    indexer_ = reference ? attention::make_reference_indexer(shape)
                         : attention::make_cpu_indexer(shape, host);
  }
  const model::Executor executor{ops_.get(), attention_.get(), indexer_.get(), plan_.dtype};
  forward_ = std::make_unique<model::ForwardPass>(config_, weights, executor,
                                                  model::StepLimits{plan_.ubatch, plan_.context});
  return {};
}

void Runner::truncate(size_t count) {
  if (count >= tokens_.size()) return;
  tokens_.resize(count);
  table_.truncate(static_cast<int64_t>(count));
}

Result<model::StepStats> Runner::step(std::span<const int32_t> ids, Want want) {
  const auto count = static_cast<int64_t>(ids.size());
  const auto first = static_cast<int64_t>(tokens_.size());
  TOPKNOT_ASSERT(count > 0 && count <= plan_.ubatch);
  TOPKNOT_ASSERT(first + count <= plan_.context);
  const bool grown = table_.grow(first + count);
  TOPKNOT_ASSERT(grown);  // the cache holds the whole context and this sequence only
  positions_.resize(ids.size());
  std::iota(positions_.begin(), positions_.end(), static_cast<int32_t>(first));
  requests_.assign(ids.size(), 0);
  slots_.clear();
  for (const int32_t position : positions_) slots_.push_back(table_.slot(position));
  rows_.clear();
  if (want == Want::kLast) rows_.push_back(static_cast<int32_t>(count - 1));
  if (want == Want::kAll) {
    rows_.resize(ids.size());
    std::iota(rows_.begin(), rows_.end(), 0);
  }
  model::Batch batch;
  batch.ids = ids;
  batch.positions = positions_;
  batch.requests = requests_;
  batch.slot_mapping = slots_;
  batch.block_table = table_.pages();
  batch.max_pages = static_cast<int64_t>(table_.pages().size());
  batch.output_rows = rows_;
  TOPKNOT_TRY(const model::StepStats stats, forward_->run(batch, &cache_, hidden_.data()));
  tokens_.insert(tokens_.end(), ids.begin(), ids.end());
  return stats;
}

std::span<const float> Runner::logits(int64_t row) {
  forward_->logits(hidden_.data() + row * config_.hidden, 1, logits_.data());
  return logits_;
}

}  // namespace topknot::engine
