#include "support/model_runner.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "attention/registry.h"
#include "base/assert.h"
#include "base/strings.h"
#include "base/try.h"
#include "ops/cpu/cpu_ops.h"
#include "ops/reference/reference_ops.h"

namespace topknot::test {
namespace {

using capability::KvFormat;

constexpr std::string_view kReference = "reference";

Error no_such(std::string what) {
  return {.code = Code::kNotFound,
          .what = std::move(what),
          .where = "RunnerOptions",
          .why = "it is not built, or this processor lacks its instructions",
          .fix = "name another"};
}

const ops::Kernels* kernels_of(std::string_view name) {
  if (name == kReference || name == "best") return ops::available_kernels().front();
  return ops::find_kernels(name);
}

const attention::Backend* backend_of(std::string_view name) {
  for (const attention::RegistryEntry& entry : attention::registry()) {
    if (entry.name == name) return entry.backend;
  }
  return nullptr;
}

void fill_with_nan(const kvcache::CacheRows& rows) {
  if (rows.empty()) return;
  std::memset(rows.data, 0xFF, static_cast<size_t>(rows.row_bytes * rows.slots));
}

void append(Matrix* matrix, const float* data, int64_t rows, int64_t width) {
  matrix->columns = static_cast<size_t>(width);
  matrix->rows += static_cast<size_t>(rows);
  matrix->values.insert(matrix->values.end(), data, data + rows * width);
}

}  // namespace

RunnerOptions reference_path() { return {}; }

RunnerOptions fast_path() {
  RunnerOptions options;
  options.kernels = "best";
  return options;
}

RunnerOptions user_path() {
  RunnerOptions options = fast_path();
  options.cache = KvFormat::kBf16;
  return options;
}

ModelRunner::ModelRunner(gguf::ModelFile file, model::ModelConfig config, model::BoundWeights bound,
                         const RunnerOptions& options)
    : file_(std::move(file)),
      config_(std::move(config)),
      bound_(std::move(bound)),
      options_(options),
      pool_(options.threads) {}

Result<std::unique_ptr<ModelRunner>> ModelRunner::open(const std::string& path,
                                                       const RunnerOptions& options) {
  std::vector<gguf::Override> overrides;
  for (const std::string& text : options.overrides) {
    TOPKNOT_TRY(gguf::Override each, gguf::Override::parse(text));
    overrides.push_back(std::move(each));
  }
  TOPKNOT_TRY(gguf::ModelFile file, gguf::ModelFile::open(path, overrides));
  TOPKNOT_TRY(model::ModelConfig config, model::read_config(file));
  if (options.dense) config.indexer.reset();
  TOPKNOT_TRY(model::BoundWeights bound, model::bind_weights(file, config));
  std::unique_ptr<ModelRunner> runner(
      new ModelRunner(std::move(file), std::move(config), std::move(bound), options));
  TOPKNOT_CHECK_OK(runner->prepare());
  return runner;
}

Status ModelRunner::prepare() {
  const model::ModelConfig& c = config_;
  const bool reference = options_.kernels == kReference;
  const ops::Kernels* kernels = kernels_of(options_.kernels);
  if (kernels == nullptr) return no_such(cat("kernels ", options_.kernels));
  const std::string name = !options_.backend.empty() ? options_.backend
                           : reference               ? "cpu_reference"
                                                     : "cpu_simd";
  const attention::Backend* backend = backend_of(name);
  if (backend == nullptr) return no_such(cat("backend ", name));
  const attention::Resources host{.pool = &pool_, .kernels = kernels};
  ops_ = reference ? ops::make_reference_ops() : ops::make_cpu_ops(*kernels, &pool_);
  TOPKNOT_TRY(attention_, backend->create({c.heads, c.kv_lora_rank, c.qk_rope_head_dim}, host));
  kvcache::CacheShape shape{.format = options_.cache, .latent_width = c.latent_width()};
  for (int64_t i = 0; i < c.layers; ++i) shape.layer_has_index.push_back(c.has_own_indexer(i));
  if (c.indexer) {
    const attention::IndexerShape indexer{c.indexer->heads, c.indexer->head_dim,
                                          std::min(c.indexer->topk, options_.context),
                                          options_.chunk, options_.context};
    indexer_ = reference ? attention::make_reference_indexer(indexer)
                         : attention::make_cpu_indexer(indexer, host);
    shape.index_width = c.indexer->head_dim;
  }
  TOPKNOT_TRY(kvcache::Cache cache, kvcache::Cache::create(shape, options_.context));
  cache_ = std::make_unique<kvcache::Cache>(std::move(cache));
  pass_ = std::make_unique<model::ForwardPass>(
      c, bound_.weights,
      model::Executor{ops_.get(), attention_.get(), indexer_.get(), options_.dtype},
      model::StepLimits{options_.chunk, options_.context});
  while (const auto page = cache_->take_page()) pages_.push_back(*page);
  reset();
  return {};
}

void ModelRunner::reset() {
  for (size_t layer = 0; layer < static_cast<size_t>(config_.layers); ++layer) {
    fill_with_nan(cache_->latent_rows(layer));
    fill_with_nan(cache_->index_rows(layer));
  }
  std::mt19937 random(seed_++);
  std::shuffle(pages_.begin(), pages_.end(), random);
  length_ = 0;
  stats_ = {};
}

model::Observer ModelRunner::observe(Trace* trace) const {
  model::Observer observer;
  observer.values = [trace](int64_t layer, std::string_view name, const float* data, int64_t rows,
                            int64_t width) {
    append(&trace->values[{layer, std::string(name)}], data, rows, width);
  };
  observer.selection = [trace](int64_t layer, const int32_t* positions, int64_t tokens, int64_t k) {
    for (int64_t t = 0; t < tokens; ++t) {
      const int32_t* row = positions + t * k;
      trace->selected[layer].emplace_back(row, std::find(row, row + k, -1));
    }
  };
  observer.scores = [this, trace](int64_t layer, const float* scores, int64_t tokens,
                                  int64_t stride) {
    for (int64_t t = 0; t < tokens; ++t) {
      const float* row = scores + t * stride;
      const bool scored = !std::isnan(row[0]);
      trace->scores[layer].emplace_back(row, row + (scored ? length_ + t + 1 : 0));
    }
  };
  observer.experts = [trace](int64_t layer, const int32_t* ids, const float* weights,
                             int64_t tokens, int64_t used) {
    auto& all_ids = trace->experts[layer];
    all_ids.insert(all_ids.end(), ids, ids + tokens * used);
    auto& all_weights = trace->expert_weights[layer];
    all_weights.insert(all_weights.end(), weights, weights + tokens * used);
  };
  return observer;
}

Matrix ModelRunner::feed(std::span<const int32_t> ids, std::span<const int32_t> wanted,
                         Trace* trace) {
  const auto hidden_width = static_cast<size_t>(config_.hidden);
  Matrix logits{0, static_cast<size_t>(bound_.vocab), {}};
  size_t next_wanted = 0;
  for (size_t begin = 0; begin < ids.size(); begin += static_cast<size_t>(options_.chunk)) {
    const size_t tokens = std::min(ids.size() - begin, static_cast<size_t>(options_.chunk));
    std::vector<int32_t> positions(tokens), requests(tokens, 0), slots(tokens), outputs;
    std::iota(positions.begin(), positions.end(), static_cast<int32_t>(length_));
    for (size_t i = 0; i < tokens; ++i) {
      const int32_t page = positions[i] / kvcache::kPageTokens;
      slots[i] = pages_[static_cast<size_t>(page)] * kvcache::kPageTokens +
                 positions[i] % kvcache::kPageTokens;
    }
    for (; next_wanted < wanted.size(); ++next_wanted) {
      const auto row = static_cast<size_t>(wanted[next_wanted]) - begin;
      if (row >= tokens) break;
      outputs.push_back(static_cast<int32_t>(row));
    }
    const model::Batch batch{.ids = ids.subspan(begin, tokens),
                             .positions = positions,
                             .requests = requests,
                             .slot_mapping = slots,
                             .block_table = pages_,
                             .max_pages = static_cast<int64_t>(pages_.size()),
                             .output_rows = outputs};
    std::vector<float> hidden(outputs.size() * hidden_width);
    const model::Observer observer = trace != nullptr ? observe(trace) : model::Observer{};
    const auto stats =
        pass_->run(batch, cache_.get(), hidden.data(), trace != nullptr ? &observer : nullptr);
    TOPKNOT_ASSERT(stats.has_value());  // host backends have no way to fail
    stats_.queries += stats->queries;
    stats_.sparse_queries += stats->sparse_queries;
    // A step in which no query sees too many keys makes no selection: all keys are attended.
    for (int64_t layer = 0; trace != nullptr && layer < config_.layers; ++layer) {
      if (!config_.has_own_indexer(layer)) continue;
      auto& rows = trace->selected[layer];
      for (size_t t = rows.size(); t < static_cast<size_t>(length_) + tokens; ++t) {
        rows.emplace_back(t + 1);
        std::iota(rows.back().begin(), rows.back().end(), 0);
      }
      trace->scores[layer].resize(rows.size());
    }
    length_ += static_cast<int64_t>(tokens);
    logits.values.resize((logits.rows + outputs.size()) * logits.columns);
    pass_->logits(hidden.data(), static_cast<int64_t>(outputs.size()),
                  logits.values.data() + logits.rows * logits.columns);
    logits.rows += outputs.size();
  }
  return logits;
}

Matrix ModelRunner::feed_all(std::span<const int32_t> ids, Trace* trace) {
  std::vector<int32_t> wanted(ids.size());
  std::iota(wanted.begin(), wanted.end(), 0);
  return feed(ids, wanted, trace);
}

std::vector<float> ModelRunner::feed_last(std::span<const int32_t> ids) {
  const int32_t last = static_cast<int32_t>(ids.size()) - 1;
  return feed(ids, {&last, 1}).values;
}

void ModelRunner::feed_each(std::span<const int32_t> ids,
                            const std::function<void(size_t, std::span<const float>)>& visit) {
  const auto chunk = static_cast<size_t>(options_.chunk);
  for (size_t begin = 0; begin < ids.size(); begin += chunk) {
    const Matrix logits = feed_all(ids.subspan(begin, std::min(chunk, ids.size() - begin)));
    for (size_t i = 0; i < logits.rows; ++i) visit(begin + i, logits.row(i));
  }
}

std::vector<int32_t> ModelRunner::greedy(std::span<const float> last, size_t count) {
  std::vector<int32_t> out = {argmax(last)};
  while (out.size() < count) out.push_back(argmax(feed_last({&out.back(), 1})));
  return out;
}

int32_t argmax(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

double nll(std::span<const float> logits, int32_t id) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return largest + std::log(sum) - static_cast<double>(logits[static_cast<size_t>(id)]);
}

}  // namespace topknot::test
