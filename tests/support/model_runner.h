// A model file and everything a forward pass needs, put together by hand, so that a test says
// exactly which kernels, backend and cache format it runs on. One sequence at a time.
//
// Pages of the cache are handed out in a scrambled order and every row starts as NaN: a row that is
// read before it is written, or found without the block table, spoils the result.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attention/attention.h"
#include "attention/indexer/indexer.h"
#include "base/thread_pool.h"
#include "gguf/model_file.h"
#include "kvcache/cache.h"
#include "model/config.h"
#include "model/forward.h"
#include "model/weights.h"
#include "ops/ops.h"
#include "support/golden.h"
#include "topknot/error.h"

namespace topknot::test {

struct RunnerOptions {
  // "reference": scalar operations and indexer, backend cpu_reference. Otherwise the name of a set
  // of kernels ("avx512", "avx2", "portable"), or "best"; with backend cpu_simd.
  std::string kernels = "reference";
  std::string backend;  // forces one; empty: as above
  capability::KvFormat cache = capability::KvFormat::kF32;
  capability::ActivationType dtype = capability::ActivationType::kF32;
  bool dense = false;  // the model without its indexer
  int threads = 1;
  int64_t chunk = 512;                 // tokens of one step
  int64_t context = 1024;              // of the sequence
  std::vector<std::string> overrides;  // "KEY=TYPE:VALUE"
};

// "reference" with rows in fp32: what goldens are compared with tightly.
RunnerOptions reference_path();
// The fast code, with the numbers of the reference path: fp32 rows.
RunnerOptions fast_path();
// What users get: the fast code and bf16 rows.
RunnerOptions user_path();

// What an observer saw, rows of all steps one below the other.
struct Trace {
  std::map<std::pair<int64_t, std::string>, Matrix> values;  // by layer and name; embed is layer -1
  // By layer; for layers with their own indexer. Ascending; every visible key where all are taken.
  std::map<int64_t, std::vector<std::vector<int32_t>>> selected;
  std::map<int64_t, std::vector<std::vector<float>>> scores;  // empty for rows that were not scored
  std::map<int64_t, std::vector<int32_t>> experts;            // [tokens, used], best first
  std::map<int64_t, std::vector<float>> expert_weights;

  const Matrix& at(int64_t layer, const std::string& name) const {
    return values.at({layer, name});
  }
};

class ModelRunner {
 public:
  static Result<std::unique_ptr<ModelRunner>> open(const std::string& path,
                                                   const RunnerOptions& options);

  const model::ModelConfig& config() const { return config_; }
  const model::BoundWeights& bound() const { return bound_; }
  int64_t length() const { return length_; }
  // Of all steps since reset().
  const model::StepStats& stats() const { return stats_; }

  void reset();  // an empty sequence, other pages
  // Appends tokens in chunks; returns the logits [wanted, vocabulary] of `wanted`, which are
  // indices into `ids` in ascending order.
  Matrix feed(std::span<const int32_t> ids, std::span<const int32_t> wanted,
              Trace* trace = nullptr);
  Matrix feed_all(std::span<const int32_t> ids, Trace* trace = nullptr);  // logits of every token
  std::vector<float> feed_last(std::span<const int32_t> ids);             // of the last token
  // Calls visit(index, logits) for each token in order, without keeping them.
  void feed_each(std::span<const int32_t> ids,
                 const std::function<void(size_t, std::span<const float>)>& visit);
  // Continues token by token after logits `last`, always with the largest logit (the lower id
  // first).
  std::vector<int32_t> greedy(std::span<const float> last, size_t count);

 private:
  ModelRunner(gguf::ModelFile file, model::ModelConfig config, model::BoundWeights bound,
              const RunnerOptions& options);
  Status prepare();
  model::Observer observe(Trace* trace) const;

  gguf::ModelFile file_;
  model::ModelConfig config_;
  model::BoundWeights bound_;
  RunnerOptions options_;
  ThreadPool pool_;
  std::unique_ptr<ops::Ops> ops_;
  std::unique_ptr<attention::Attention> attention_;
  std::unique_ptr<attention::Indexer> indexer_;
  std::unique_ptr<kvcache::Cache> cache_;
  std::unique_ptr<model::ForwardPass> pass_;
  std::vector<int32_t> pages_;  // the block table
  uint32_t seed_ = 1;
  int64_t length_ = 0;
  model::StepStats stats_;
};

int32_t argmax(std::span<const float> logits);  // the lower index first
// Negative natural logarithm of the probability of `id`.
double nll(std::span<const float> logits, int32_t id);

}  // namespace topknot::test
