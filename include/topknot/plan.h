// What would run a model on a machine, what it takes and what a token costs, before a byte of
// weights is read; and which attention backend takes stated facts, without any model.
//
//   auto plan = topknot::plan_model({.model = "model.gguf", .machine = "rtx-pro-6000",
//                                    .context = 32768, .tensor_parallel_size = 8});
//   auto choice = topknot::select_attention_backend({.machine = "h200", .heads = 64,
//                                                    .kv_lora_rank = 512, .topk = 2048});
//
// An Error is about the question: a file, a name or a number that is wrong. What a machine cannot
// do is an answer, and in the result: each candidate with what it needs, what was found, why, and
// what to do. Formulas of memory and price: docs/plan.md. Every function may be called from any
// thread; results are plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topknot/error.h"
#include "topknot/export.h"

namespace topknot {

// One limit of an implementation that is not met.
struct PlanRefusal {
  std::string what;    // the fact: "kv_format"
  std::string needed;  // "one of f32, bf16"
  std::string found;   // "q8_0"; "unknown" when nobody stated it
  std::string because;
  std::string remedy;  // may be empty
};

struct PlanCandidate {
  std::string name;
  std::vector<PlanRefusal> refusals;  // every broken limit; none: it could run
};

// One operation, resolved among its implementations.
struct PlanChoice {
  std::string operation;                  // "attention decode", "linear Q4_K"
  std::string chosen;                     // a candidate's name; empty: nothing can run it
  std::vector<PlanCandidate> candidates;  // in order of preference
  std::string asked;                      // the facts: "device=cpu heads=64 ..."
  std::string explanation;                // of all candidates, for people; lines
};

// --- A model on a machine ------------------------------------------------------------------------

struct PlanOptions {
  std::string model;    // a .gguf file, any part of a split model, or a directory; headers suffice
  std::string machine;  // a name of docs/devices, or a JSON file of that schema; empty: this one
  std::string device;   // "cpu", "cuda:N"; empty: the machine's first, of this one the cpu
  int64_t context = 0;  // tokens of each sequence; 0: what fits, at most what was trained
  int64_t sequences = 1;  // at once
  int tensor_parallel_size = 1;
  int64_t ubatch = 512;                        // most tokens of one step of prefill
  int threads = 0;                             // of a cpu; 0: every core
  std::string dtype = "auto";                  // residual stream: auto, f32, bf16
  std::string kv_cache_dtype = "auto";         // cache rows: auto, f32, bf16, fp8, q8_0
  std::string attention_backend;               // a name of `topknot backends`; empty: chosen
  std::vector<std::string> backend_libraries;  // as EngineOptions has them
  std::string kernels = "auto";          // loops of a cpu: auto, avx512, avx2, portable, reference
  bool dense = false;                    // attend to every key, whatever the indexer would select
  uint64_t disk_bytes_per_second = 0;    // that the model is read with; 0: the machine's
  std::vector<std::string> override_kv;  // "KEY=TYPE:VALUE"
};

// Bytes of one device, or of the host.
struct PlanMemory {
  std::string device;  // "cuda:0", "host"
  uint64_t weights_bytes = 0, cache_bytes = 0, workspace_bytes = 0, staging_bytes = 0;
  uint64_t reserve_bytes = 0;
  uint64_t total_bytes = 0;
  std::optional<uint64_t> usable_bytes;  // none: nobody stated it, and all fits
  bool fits = true;
};

// A change that would make room.
struct PlanRemedy {
  std::string change;   // "a smaller context"
  std::string option;   // of the program; empty when it is not an option
  std::string detail;   // with numbers
  bool enough = false;  // by itself
};

struct PlanOperationPrice {
  std::string operation;
  double bytes = 0, operations = 0;
  std::optional<double> seconds;  // none: needs a number that nobody stated
};

// Of one token after `depth` keys: the least that a machine of the stated peaks needs.
struct PlanTokenPrice {
  int64_t depth = 0;
  double bytes = 0;       // of memory
  double operations = 0;  // a multiply-add is two
  std::optional<double> seconds;
  std::vector<PlanOperationPrice> parts;
};

struct ModelPlan {
  bool complete = false;  // every operation has an implementation
  bool fits = false;      // everything fits in memory

  std::string model_name, architecture;
  std::string machine_name, device, device_name;
  bool sparse = false;
  std::string attention_reason;  // the key that makes it sparse, or why it is dense
  int64_t index_topk = 0;        // 0 when dense
  std::string kv_cache_dtype, dtype;
  std::string kernels;  // loops of a cpu; empty elsewhere
  int threads = 0;      // of a cpu

  std::vector<PlanChoice> operations;  // in the order of a step

  int64_t context = 0, sequences = 1, ubatch = 0;
  int64_t largest_context = 0;        // of each sequence, that fits; 0: none
  int64_t cache_bytes_per_token = 0;  // in all layers
  std::vector<PlanMemory> memory;     // of each rank's device, and of the host
  std::vector<PlanRemedy> remedies;   // cheapest first; empty when all fits

  std::vector<PlanTokenPrice> decode;   // of one token of one sequence
  std::vector<PlanTokenPrice> prefill;  // a token's part of a step of `ubatch` tokens
  uint64_t load_bytes = 0;
  std::optional<double> load_seconds;
  std::vector<std::string> unknown;  // facts that are missing for a time

  std::vector<std::string> notes;     // defaults used, tensors left out
  std::vector<std::string> warnings;  // dense attention on a sparse model, and the like
};

//   kNotFound         no such model, machine, device or backend
//   kInvalidArgument  a name that is not known
//   kOutOfRange       a number beyond its limits, a context beyond what was trained
//   kUnsupported      an architecture or a tensor type this version has never heard of
//   kCorrupt          a model or machine file that is wrong
TOPKNOT_API Result<ModelPlan> plan_model(const PlanOptions& options);

// --- An attention backend for stated facts -------------------------------------------------------

inline constexpr int64_t kMaxAttentionFact = int64_t{1} << 40;  // of any number below

// What a backend may ask. What is not stated stays unknown, and breaks the limits that need it.
struct AttentionFacts {
  std::string machine;  // as in PlanOptions
  std::string device;
  bool dense = false;                       // over every key, not over the top-k of an indexer
  std::optional<int64_t> heads;             // query heads on this rank
  std::optional<int64_t> kv_lora_rank;      // elements of a latent row that are values
  std::optional<int64_t> qk_rope_head_dim;  // elements of a latent row that are rotated
  std::optional<int64_t> qk_nope_head_dim;
  std::optional<int64_t> topk;  // keys read by a query
  std::optional<int64_t> index_n_heads;
  std::optional<int64_t> index_head_dim;
  std::string kv_format = "bf16";  // of cache rows: f32, bf16, fp8_ds, q8_0
  std::string dtype = "f32";       // of the residual stream: f32, bf16
  int64_t page_tokens = 64;
};

// The first backend that takes the facts, or the one named `forced`: when that refuses, nothing is
// chosen, and never another. All candidates are in the answer.
//   kNotFound         no such machine, device or backend
//   kInvalidArgument  a kv_format or dtype that is not known
//   kOutOfRange       a number below 1 or above kMaxAttentionFact
TOPKNOT_API Result<PlanChoice> select_attention_backend(const AttentionFacts& facts,
                                                        const std::string& forced = {});

}  // namespace topknot
