// One call of a backend on inputs that lie in host memory, wherever the backend computes: what
// probes and tests run. Serving keeps its data where it is used.
#pragma once

#include <vector>

#include "attention/attention.h"

namespace topknot::attention {

// What a backend is given. Queries are f32; a GPU backend gets them rounded to bf16.
struct HostProblem {
  MlaShape shape;
  MlaArgs args;          // in host memory; out, lse and stream are not used
  int64_t requests = 0;  // rows of the block table
  bool with_lse = true;  // else the backend gets none to write, as in a forward pass
  // Of the outputs before the call: each must be written.
  static constexpr unsigned char kPoison = 0xFF;  // as bytes a NaN of f32 and bf16
};

struct HostAnswer {
  std::vector<float> out;  // [tokens, H, R]
  std::vector<float> lse;  // [tokens, H]; NaN without
};

// What create(), plan() and run() say, and what a GPU runs into while it copies and computes.
Result<HostAnswer> run_once(const Backend& backend, const HostProblem& problem,
                            const Resources& resources);

}  // namespace topknot::attention
