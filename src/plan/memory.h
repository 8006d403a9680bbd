// Where every byte of a plan lies, and what to change when it does not fit.
//
//   weights    a rank's part of each tensor, as blocks; on a host they are mapped from the file
//   cache      rows of every layer for context * sequences tokens, on every rank
//   workspace  buffers of a step of `ubatch` tokens, by the functions that make them
//   staging    pinned host memory through which weights reach a GPU
//   reserve    the CUDA context; on a host the program itself
// Formulas: docs/plan.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attention/attention.h"
#include "attention/indexer/indexer.h"
#include "base/checked_math.h"
#include "kvcache/cache.h"
#include "model/config.h"
#include "model/weights.h"
#include "plan/target.h"

namespace topknot::plan {

inline constexpr uint64_t kStagingBytesPerRank = 256 << 20;
// What a CUDA context and its kernels take of a device: an estimate until a kernel exists to
// measure.
inline constexpr uint64_t kCudaReserveBytes = 600 << 20;
inline constexpr uint64_t kProgramBytes = 16 << 20;         // resident before a model is opened
inline constexpr uint64_t kStackBytesPerThread = 64 << 10;  // touched, not reserved

struct MemoryUse {
  std::string device;              // "cuda:0", "host"
  std::optional<uint64_t> usable;  // unknown where nobody stated it
  uint64_t weights = 0, cache = 0, workspace = 0, staging = 0, reserve = 0;
  uint64_t total() const;  // kTooManyBytes when it cannot be counted
  bool fits() const { return total() < kTooManyBytes && (!usable || total() <= *usable); }
};

// A change that would make room, with its numbers.
struct Remedy {
  std::string change;  // "a smaller context"
  std::string option;  // what to type; empty when it is not an option
  std::string detail;
  bool enough = false;  // by itself
};

struct MemoryPlan {
  std::vector<MemoryUse> devices;  // one for each rank's device, and the host
  int64_t bytes_per_token = 0;     // of cache, in all layers
  int64_t largest_context = 0;     // that fits, of each sequence; 0: none
  bool usable_is_total = false;    // usable memory was not stated: all of it is assumed
  std::vector<Remedy> remedies;    // cheapest first; empty when all fits

  bool fits() const;
  bool countable() const;  // no total is beyond 64 bits
};

// What decides how much memory is needed.
struct MemoryRequest {
  bool sparse = false;
  kvcache::CacheShape cache;
  int64_t context = 0, sequences = 1, ubatch = 0;
  int threads = 1;
  std::shared_ptr<const attention::Backend> attention_backend;  // the chosen one; null: none was
  bool reference = false;  // scalar loops need no scratch of their own
};

MemoryPlan measure_memory(const model::ModelConfig& config, const model::CheckedTensors& tensors,
                          const MemoryRequest& request, const Target& target);

// The largest context, in whole pages, at most `most`, of which all fits; 0: none.
int64_t largest_context(const model::ModelConfig& config, const model::CheckedTensors& tensors,
                        MemoryRequest request, const Target& target, int64_t most);

// The shape of the indexer that a step of such a plan needs.
attention::IndexerShape indexer_shape(const model::ModelConfig& config, int64_t ubatch,
                                      int64_t context);

// Changes that would make room, cheapest first. `row_formats`: formats of fewer bytes that a
// backend takes here.
std::vector<Remedy> find_remedies(const model::ModelConfig& config,
                                  const model::CheckedTensors& tensors,
                                  const MemoryRequest& request, const Target& target,
                                  const std::vector<kvcache::KvFormat>& row_formats);

}  // namespace topknot::plan
