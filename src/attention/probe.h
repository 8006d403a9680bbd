// A probe executes one small tile and compares numbers with cpu_reference: that a backend was
// built, or that a device has the right version, is no proof that it computes (T-1.6).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attention/attention.h"
#include "attention/backend_list.h"

namespace topknot::attention {

struct ProbeResult {
  std::string backend;
  std::string kernels;                // instruction set of the host, "sm_90", or "library"
  std::string selection;              // "sparse" or "dense"
  std::vector<std::string> refusals;  // why it was not run here; empty when it was
  std::string problem;                // what create() or run() said, if one of them failed
  double largest_difference = 0;      // of outputs and lse; infinite when one of them is no number
  double limit = 0;
  bool passed() const { return refusals.empty() && problem.empty() && largest_difference <= limit; }
};

// What a tile is asked for.
struct ProbeTile {
  MlaShape shape = {.heads = 4, .kv_lora_rank = 512, .qk_rope_head_dim = 64};
  capability::KvFormat format = capability::KvFormat::kBf16;
  std::string to_string() const;  // "4 heads, rows of 512 + 64 in bf16"
};

// The first tile within the limits of a backend on a device, and of the reference; the default one
// if it can be. Others have other heads, other rows, or no RoPE.
std::optional<ProbeTile> find_tile(const Backend& backend, Selection selection,
                                   const Facts& device);

// What is asked of a backend that computes a tile on a device of these facts.
Facts probe_facts(const ProbeTile& tile, Selection selection, const Facts& device);

// One tile through a backend, with lse and without, on a device of these facts. Rows that are not
// selected hold NaN, so a backend that reads them fails; one token reads nothing.
ProbeResult probe_tile(const Backend& backend, const ProbeTile& tile, Selection selection,
                       const Resources& resources, const Facts& device);

// The default tile, sparse and then dense.
std::vector<ProbeResult> probe_backend(const Backend& backend, const Resources& resources,
                                       const Facts& device);

// Every backend of the list that is there: those of the host with every instruction set this
// processor has, those of a GPU on every GPU that is here, those of libraries once each.
std::vector<ProbeResult> probe_all(const BackendList& backends, ThreadPool* pool);

}  // namespace topknot::attention
