#include "device/cuda/cuda_facts.h"

#include <cuda_runtime_api.h>

#include <memory>
#include <optional>

#include "base/strings.h"
#include "device/cuda/cuda_error.h"
#include "device/cuda/current_device.h"
#include "device/cuda/probe.h"

namespace topknot::device {
namespace {

int attribute(int device, cudaDeviceAttr which) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, which, device) != cudaSuccess) return 0;
  return value;
}

std::string bus_id(int device) {
  char text[32] = {};
  if (cudaDeviceGetPCIBusId(text, sizeof text, device) != cudaSuccess) return {};
  return text;
}

uint64_t memory_bandwidth(int device) {
  const auto clock_khz = static_cast<uint64_t>(attribute(device, cudaDevAttrMemoryClockRate));
  const auto bus_bits = static_cast<uint64_t>(attribute(device, cudaDevAttrGlobalMemoryBusWidth));
  constexpr uint64_t kTransfersPerClock = 2;
  return clock_khz * 1000 * kTransfersPerClock * (bus_bits / 8);
}

CudaDevice describe(int index) {
  CudaDevice d;
  d.index = index;
  cudaDeviceProp properties{};
  if (cudaGetDeviceProperties(&properties, index) == cudaSuccess) d.name = properties.name;
  d.sm = attribute(index, cudaDevAttrComputeCapabilityMajor) * 10 +
         attribute(index, cudaDevAttrComputeCapabilityMinor);
  d.sm_count = attribute(index, cudaDevAttrMultiProcessorCount);
  d.shared_memory_per_block = attribute(index, cudaDevAttrMaxSharedMemoryPerBlockOptin);
  d.shared_memory_per_sm = attribute(index, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  d.l2_cache_bytes = attribute(index, cudaDevAttrL2CacheSize);
  d.memory_bytes_per_second = memory_bandwidth(index);
  d.memory_total_bytes = properties.totalGlobalMem;
  d.pci_bus_id = bus_id(index);
  size_t free_bytes = 0, total_bytes = 0;
  if (cudaSetDevice(index) == cudaSuccess &&
      cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess) {
    d.memory_free_bytes = free_bytes;
    d.memory_total_bytes = total_bytes;
  }
  return d;
}

struct DeviceFree {
  void operator()(float* data) const { cudaFree(data); }
};
using DeviceVector = std::unique_ptr<float, DeviceFree>;

constexpr int kProbeCount = 1000;  // not a multiple of the thread block
constexpr size_t kProbeBytes = kProbeCount * sizeof(float);

// Runs the kernel on the current device; `sum` receives what the GPU computed.
cudaError_t add_on_gpu(const float* a, const float* b, float* sum) {
  DeviceVector vectors[3];
  for (auto& vector : vectors) {
    void* data = nullptr;
    if (const auto error = cudaMalloc(&data, kProbeBytes); error != cudaSuccess) return error;
    vector.reset(static_cast<float*>(data));
  }
  const float* inputs[2] = {a, b};
  for (int i = 0; i < 2; ++i) {
    const auto error = cudaMemcpy(vectors[i].get(), inputs[i], kProbeBytes, cudaMemcpyHostToDevice);
    if (error != cudaSuccess) return error;
  }
  const auto launched = launch_add_vectors({.a = vectors[0].get(),
                                            .b = vectors[1].get(),
                                            .sum = vectors[2].get(),
                                            .count = kProbeCount});
  if (launched != cudaSuccess) return launched;
  return cudaMemcpy(sum, vectors[2].get(), kProbeBytes, cudaMemcpyDeviceToHost);
}

Error probe_error(int device, Code code, std::string why, std::string fix) {
  return Error{.code = code,
               .what = "the GPU does not run this program's code",
               .where = cat("cuda:", device),
               .why = std::move(why),
               .fix = std::move(fix)};
}

}  // namespace

CudaFacts cuda_facts() {
  CudaFacts facts;
  facts.built = true;
  const CurrentDevice restore;
  cudaRuntimeGetVersion(&facts.runtime_version);
  if (cudaDriverGetVersion(&facts.driver_version) != cudaSuccess) facts.driver_version = 0;
  int count = 0;
  auto error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count == 0) error = cudaErrorNoDevice;
  if (error != cudaSuccess) {
    facts.problem = facts.driver_version == 0 ? "no NVIDIA driver is installed"
                                              : std::string(cudaGetErrorString(error));
    facts.remedy = cuda_remedy(facts.driver_version == 0 ? cudaErrorInsufficientDriver : error);
    return facts;
  }
  for (int index = 0; index < count; ++index) facts.devices.push_back(describe(index));
  return facts;
}

Status probe_cuda(int device) {
  const CurrentDevice restore;
  std::vector<float> a(kProbeCount), b(kProbeCount), sum(kProbeCount);
  for (int i = 0; i < kProbeCount; ++i) {
    a[static_cast<size_t>(i)] = static_cast<float>(i);
    b[static_cast<size_t>(i)] = static_cast<float>(2 * i + 1);
  }
  auto error = cudaSetDevice(device);
  if (error == cudaSuccess) error = add_on_gpu(a.data(), b.data(), sum.data());
  if (error != cudaSuccess) {
    cudaGetLastError();  // clears it, so that the next call does not report it again
    return probe_error(device, cuda_code(error), cudaGetErrorString(error), cuda_remedy(error));
  }
  for (int i = 0; i < kProbeCount; ++i) {
    const float expected = static_cast<float>(3 * i + 1);  // exact in f32
    const float found = sum[static_cast<size_t>(i)];
    if (found != expected) {
      return probe_error(
          device, Code::kResource, cat("element ", i, " of a sum is ", found, ", not ", expected),
          "the GPU or its memory may be faulty: check nvidia-smi and the system log");
    }
  }
  return {};
}

}  // namespace topknot::device
