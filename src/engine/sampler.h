// Choosing the next token from logits. Order: penalties, temperature, top-k, top-p, min-p, one
// draw. The same seed and logits give the same tokens on every machine.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <unordered_map>
#include <vector>

#include "topknot/engine.h"
#include "topknot/error.h"

namespace topknot::engine {

// kInvalidArgument names the option and its range.
Status check_sampling(const SamplingOptions& options);

class Sampler {
 public:
  // `prompt` counts for the repeat penalty. Tokens with `allowed[id]` false, or beyond its end
  // (rows that only pad the output matrix), are never chosen.
  Sampler(const SamplingOptions& options, std::span<const int32_t> prompt,
          const std::vector<bool>& allowed);

  // kCorrupt when no logit of an allowed token is finite.
  Result<int32_t> sample(std::span<const float> logits);

  uint64_t seed() const { return seed_; }

 private:
  struct Entry {
    int32_t token;
    float logit;
  };
  void apply_penalties();
  void keep_top_k();
  void keep_likely();
  int32_t draw();

  SamplingOptions options_;
  uint64_t seed_;
  std::mt19937_64 random_;
  std::vector<int32_t> history_;
  std::unordered_map<int32_t, int32_t> generated_;
  const std::vector<bool>& allowed_;  // outlives the sampler
  std::vector<Entry> entries_;
  std::vector<double> probabilities_;
};

// The `count` likeliest tokens with their log-softmax, likeliest first; the lower id on ties.
struct Likely {
  int32_t token;
  float logprob;
};
std::vector<Likely> likeliest(std::span<const float> logits, size_t count);
double log_sum_exp(std::span<const float> logits);

}  // namespace topknot::engine
