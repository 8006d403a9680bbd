// Decides, before a weight is read, what a model runs on: an implementation for every operation,
// row format, precision, context, where every byte lies, and what a token costs. The engine
// executes a plan and decides nothing.
//
// Numbers come from a model's metadata, the descriptions of its tensors and the facts of a machine,
// read from it or from a file: any machine can be planned for on any machine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "attention/backend_list.h"
#include "capability/rules.h"
#include "device/machine.h"
#include "kvcache/cache.h"
#include "model/config.h"
#include "model/weights.h"
#include "plan/memory.h"
#include "plan/operations.h"
#include "plan/price.h"
#include "plan/target.h"
#include "topknot/error.h"

namespace topknot::plan {

inline constexpr int kMaxThreads = 1024;
inline constexpr int64_t kMaxUbatch = 1 << 16;
inline constexpr int64_t kMaxSequences = 1 << 16;

struct PlanRequest {
  std::string dtype = "auto";
  std::string kv_cache_dtype = "auto";
  attention::BackendList backends;  // that attention is chosen from
  std::string attention_backend;    // empty: chosen
  std::string kernels = "auto";
  std::string device;  // "cpu", "cuda:N"; empty: the machine's first
  bool dense = false;
  int64_t context = 0;  // of each sequence; 0: chosen
  int64_t sequences = 1;
  int ranks = 1;  // tensor parallel
  int64_t ubatch = 512;
  int threads = 0;                     // 0: every core
  uint64_t disk_bytes_per_second = 0;  // 0: the machine's, which may be unknown
};

// Threads, tokens of a step and sequences within their limits.
Status check_ranges(const PlanRequest& request);

struct Plan {
  bool sparse = false;
  std::string attention_reason;
  capability::Choice attention;                                 // of decode
  std::shared_ptr<const attention::Backend> attention_backend;  // the chosen one, or null
  std::string kernels;  // of host operations; empty elsewhere
  capability::ActivationType dtype = capability::ActivationType::kF32;
  kvcache::CacheShape cache;
  int64_t context = 0;
  int64_t sequences = 1;
  int64_t ubatch = 0;
  int threads = 1;
  uint64_t cache_bytes = 0;

  Target target;
  std::vector<Operation> operations;
  MemoryPlan memory;
  Price price;

  std::vector<std::string> notes;
  std::vector<std::string> warnings;

  bool complete() const;  // every operation has an implementation
};

// An Error is about what was asked: a name that does not exist, a number out of range, a device the
// machine does not have. Whatever the machine cannot do is in the plan, with needed, found and
// remedy. `tensors` may be empty: then no product is planned and no weight counted.
Result<Plan> make_plan(const model::ModelConfig& config, const model::CheckedTensors& tensors,
                       const PlanRequest& request, const device::Machine& machine);

// The first operation that nothing can run, or what does not fit, as an Error: asked before
// loading. Weights of a host are mapped from their file: when only they do not fit, that is a
// warning of the plan.
Status check_runnable(const Plan& plan, const PlanRequest& request);

}  // namespace topknot::plan
