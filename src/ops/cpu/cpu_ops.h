// Operations on host threads: rows of weights are decoded from their blocks a few at a time and
// meet all tokens at once. fp32 activations and sums.
#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "ops/cpu/kernels.h"
#include "ops/ops.h"

namespace topknot::ops {

// `pool` must outlive the result.
std::unique_ptr<Ops> make_cpu_ops(const Kernels& kernels, ThreadPool* pool);

// What reserve() takes for so many threads.
int64_t cpu_ops_workspace_bytes(const Ops::Limits& limits, int threads);

}  // namespace topknot::ops
