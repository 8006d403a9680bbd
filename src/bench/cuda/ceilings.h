// mma.sync as fast as the GPU can. Enqueues on `stream` and returns the launch status; `sink` [1]
// is written only if a sum has one impossible value, so that nothing is left out.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace topknot::bench {

// mma.sync m16n8k16 bf16 with fp32 sums, operands in registers, 16 warps on each of `blocks`
// blocks; kMmaFlopsPerStep operations a block and step.
inline constexpr int64_t kMmaFlopsPerStep = int64_t{16} * 8 * 2 * 16 * 8 * 16;
cudaError_t launch_mma_only(int blocks, int steps, float* sink, cudaStream_t stream);

}  // namespace topknot::bench
