// Chooses among the instances of the tiled kernel, which have a file each, and launches them.
#include "attention/backends/portable/tile_shape.h"

namespace topknot::attention::portable {

const void* tiled_bf16_16();
const void* tiled_bf16_32();
const void* tiled_bf16_64();
const void* tiled_fp8_ds_16();
const void* tiled_fp8_ds_32();
const void* tiled_fp8_ds_64();
const void* tiled_q8_0_16();
const void* tiled_q8_0_32();
const void* tiled_q8_0_64();

namespace {

const void* function_of(const TiledKernel& kernel) {
  using Accessor = const void* (*)();
  static constexpr Accessor kFunctions[kRowFormats][3] = {
      {tiled_bf16_16, tiled_bf16_32, tiled_bf16_64},
      {tiled_fp8_ds_16, tiled_fp8_ds_32, tiled_fp8_ds_64},
      {tiled_q8_0_16, tiled_q8_0_32, tiled_q8_0_64},
  };
  return kFunctions[static_cast<int>(kernel.format)][tile_index(kernel.tile_heads)]();
}

}  // namespace

cudaError_t prepare_tiled_mla(const TiledKernel& kernel, int* blocks_per_sm) {
  const void* function = function_of(kernel);
  const int bytes = tile_smem_bytes(kernel);
  const cudaError_t status =
      cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  if (status != cudaSuccess) return status;
  return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks_per_sm, function, kThreads,
                                                       static_cast<size_t>(bytes));
}

cudaError_t launch_tiled_mla(const TiledKernel& kernel, const MlaKernelArgs& args,
                             cudaStream_t stream) {
  const int64_t blocks = tile_blocks(kernel.tile_heads, args);
  if (blocks == 0) return cudaSuccess;
  void* arguments[] = {const_cast<MlaKernelArgs*>(&args)};
  return cudaLaunchKernel(function_of(kernel), dim3(static_cast<unsigned>(blocks)), dim3(kThreads),
                          arguments, static_cast<size_t>(tile_smem_bytes(kernel)), stream);
}

}  // namespace topknot::attention::portable
