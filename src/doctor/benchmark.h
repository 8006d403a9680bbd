// A model with random weights, made in the folder for temporary files and run: prefill, then
// decode. Its time is compared with what the plan says a token needs at least.
#pragma once

#include <atomic>

#include "device/machine.h"
#include "doctor/findings.h"

namespace topknot::doctor {

struct BenchmarkRequest {
  bool quick = false;                         // a model of 3 MB in place of 170, and fewer tokens
  device::Machine machine;                    // with the rates that were measured
  const std::atomic<bool>* cancel = nullptr;  // may be null
};

// Errors are those of making, opening and running a model. Nothing is left behind.
Result<Benchmark> run_benchmark(const BenchmarkRequest& request);

}  // namespace topknot::doctor
