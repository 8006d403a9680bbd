// Random contents for benchmarks, made on the GPU: gigabytes in milliseconds. The same seed gives
// the same bytes. Enqueue on `stream`, return the launch status.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace topknot::bench {

// bf16 [count], normal with mean 0 and deviation 1.
cudaError_t launch_random_bf16(void* out, int64_t count, uint32_t seed, cudaStream_t stream);
// f32 [count], the same.
cudaError_t launch_random_f32(float* out, int64_t count, uint32_t seed, cudaStream_t stream);
// Rows of 656 bytes: e4m3 of deviation 100 at most 448, scales of 1/100, normal bf16 tails.
cudaError_t launch_random_fp8_ds_rows(void* out, int64_t rows, uint32_t seed, cudaStream_t stream);
// GGML blocks of 34 bytes: quants uniform in -127..127, scales of 1/64.
cudaError_t launch_random_q8_0_blocks(void* out, int64_t blocks, uint32_t seed,
                                      cudaStream_t stream);

}  // namespace topknot::bench
