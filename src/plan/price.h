// What a token costs: bytes moved and operations done, and the time a device needs at least for
// them. An estimate from a machine's stated peaks; what nobody stated stays unknown.
//   seconds of an operation = max(bytes / bandwidth, operations / rate), of the rank that has most
// Formulas: docs/plan.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/config.h"
#include "model/weights.h"
#include "plan/operations.h"
#include "plan/target.h"

namespace topknot::plan {

// Keys before the step that is priced; as many as the context has room for.
inline constexpr int64_t kPricedDepths[] = {0, 32'768, 131'072};

struct OperationPrice {
  std::string operation;
  double bytes = 0;  // of memory, or of links for collectives
  double operations = 0;
  std::optional<double> seconds;
};

struct TokenPrice {
  int64_t depth = 0;
  std::vector<OperationPrice> parts;
  double bytes = 0;  // without those of links
  double operations = 0;
  std::optional<double> seconds;
};

struct Price {
  std::vector<TokenPrice> decode;   // of one token of one sequence
  std::vector<TokenPrice> prefill;  // a token's part of a step of `ubatch` tokens
  int64_t ubatch = 0;
  uint64_t load_bytes = 0;
  std::optional<double> load_seconds;
  std::vector<std::string> unknown;  // facts that are missing for a time
};

struct PriceRequest {
  bool sparse = false;
  kvcache::CacheShape cache;
  int64_t context = 0, ubatch = 0;
  std::optional<uint64_t> disk_bytes_per_second;
};

Price estimate_price(const model::ModelConfig& config, const model::CheckedTensors& tensors,
                     const PriceRequest& request, const Target& target);

}  // namespace topknot::plan
