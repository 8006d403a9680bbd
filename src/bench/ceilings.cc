#include "bench/ceilings.h"

#include "base/try.h"
#include "bench/cuda/ceilings.h"
#include "bench/cuda/random.h"
#include "bench/timing.h"
#include "device/cuda/cuda_error.h"
#include "device/cuda/cuda_facts.h"
#include "device/cuda/gpu.h"
#include "device/cuda/read_bytes.h"

namespace topknot::bench {
namespace {

constexpr int64_t kReadBytes = int64_t{4} << 30;  // far larger than any second-level cache
constexpr int kReadBlocksPerSm = 4;               // 4 x 512 threads fill a multiprocessor
constexpr int kMmaSteps = 20'000;

Result<double> measure_read(const device::CudaDevice& gpu, const device::Stream& stream) {
  const auto free = static_cast<int64_t>(gpu.memory_free_bytes / 2 / 256 * 256);
  const int64_t bytes = std::min(kReadBytes, free);
  TOPKNOT_TRY(
      const device::DeviceBuffer data,
      device::DeviceBuffer::allocate(gpu.index, static_cast<size_t>(bytes), "the read benchmark"));
  TOPKNOT_TRY(const device::DeviceBuffer sink,
              device::DeviceBuffer::allocate(gpu.index, sizeof(uint32_t), "a sum"));
  const auto handle = static_cast<cudaStream_t>(stream.get());
  TOPKNOT_CHECK_OK(device::cuda_status(launch_random_f32(data.as<float>(), bytes / 4, 1, handle),
                                       gpu.index, "cannot fill memory"));
  TOPKNOT_TRY(const double us, median_us(stream, 1, [&](int) {
                return device::cuda_status(
                    device::launch_read_bytes({.data = data.as<uint32_t>(),
                                               .words = static_cast<uint64_t>(bytes) / 4,
                                               .sum = sink.as<uint32_t>(),
                                               .blocks = gpu.sm_count * kReadBlocksPerSm},
                                              handle),
                    gpu.index, "cannot measure reads");
              }));
  return static_cast<double>(bytes) / us * 1e6;
}

Result<double> measure_mma(const device::CudaDevice& gpu, const device::Stream& stream) {
  TOPKNOT_TRY(const device::DeviceBuffer sink,
              device::DeviceBuffer::allocate(gpu.index, sizeof(float), "a sum"));
  TOPKNOT_TRY(const double us, median_us(stream, 1, [&](int) {
                return device::cuda_status(
                    launch_mma_only(gpu.sm_count, kMmaSteps, sink.as<float>(),
                                    static_cast<cudaStream_t>(stream.get())),
                    gpu.index, "cannot measure matrix operations");
              }));
  const double flops = static_cast<double>(kMmaFlopsPerStep) * kMmaSteps * gpu.sm_count;
  return flops / us * 1e6;
}

}  // namespace

Result<Ceilings> measure_ceilings(int cuda_device) {
  TOPKNOT_TRY(const device::CudaDevice gpu, find_gpu(cuda_device));
  TOPKNOT_TRY(const device::Stream stream, device::Stream::create(cuda_device));
  Ceilings ceilings{.device = gpu.name};
  TOPKNOT_TRY(ceilings.read_bytes_per_second, measure_read(gpu, stream));
  TOPKNOT_TRY(ceilings.mma_flops_per_second, measure_mma(gpu, stream));
  return ceilings;
}

}  // namespace topknot::bench
