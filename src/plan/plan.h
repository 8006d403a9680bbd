// Decides, before a weight is read, what a model runs on: attention, row format, precision,
// context. The engine executes a plan and decides nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capability/rules.h"
#include "device/cpu/host_facts.h"
#include "kvcache/cache.h"
#include "model/config.h"
#include "topknot/error.h"

namespace topknot::plan {

inline constexpr int kMaxThreads = 1024;
inline constexpr int64_t kMaxUbatch = 1 << 16;

struct PlanRequest {
  std::string dtype = "auto";
  std::string kv_cache_dtype = "auto";
  std::string attention_backend;  // empty: chosen
  std::string kernels = "auto";
  bool dense = false;
  int64_t context = 0;  // 0: chosen
  int64_t ubatch = 512;
  int threads = 0;  // 0: every core
  uint64_t weight_bytes = 0;
};

struct Plan {
  bool sparse = false;
  std::string attention_reason;
  capability::Choice attention;  // has a chosen backend
  std::string kernels;
  capability::ActivationType dtype = capability::ActivationType::kF32;
  kvcache::CacheShape cache;
  int64_t context = 0;
  int64_t ubatch = 0;
  int threads = 1;
  uint64_t cache_bytes = 0;
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
};

// Refusals say what was needed, what was found, and what to do.
Result<Plan> make_plan(const model::ModelConfig& config, const PlanRequest& request,
                       const device::HostFacts& host);

// What attention asks of a backend for this model.
capability::Facts attention_facts(const model::ModelConfig& config, bool sparse,
                                  kvcache::KvFormat format);

}  // namespace topknot::plan
