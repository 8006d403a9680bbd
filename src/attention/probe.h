// A probe executes one small tile and compares numbers with cpu_reference: that a backend was
// built, or that a device has the right version, is no proof that it computes (T-1.6).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "attention/attention.h"

namespace topknot::attention {

struct ProbeResult {
  std::string backend;
  std::string kernels;                // instruction set of host backends; "sm_90" of a GPU's
  std::string selection;              // "sparse" or "dense"
  std::vector<std::string> refusals;  // why it was not run here; empty when it was
  std::string problem;                // what create() or run() said, if one of them failed
  double largest_difference = 0;      // of outputs and lse; infinite when one of them is no number
  double limit = 0;
  bool passed() const { return refusals.empty() && problem.empty() && largest_difference <= limit; }
};

// One tile (4 heads, rank 512, rope 64, bf16 rows) through one backend, sparse and then dense, on a
// device of these facts. Rows that are not selected hold NaN, so a backend that reads them fails.
std::vector<ProbeResult> probe_backend(const Backend& backend, const Resources& resources,
                                       const Facts& device);

// Every built backend of the registry: those of the host with every instruction set this processor
// has, those of a GPU on every GPU that is here.
std::vector<ProbeResult> probe_registry(ThreadPool* pool);

}  // namespace topknot::attention
