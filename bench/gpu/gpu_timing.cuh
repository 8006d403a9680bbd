// How GPU benchmarks of this folder allocate, time and compare: device memory freed at the end of a
// scope, medians over replays of a CUDA graph, and the ceilings of this device in the same run.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

namespace topknot::bench {

inline void check_cuda(cudaError_t status, const char* what, int line) {
  if (status == cudaSuccess) return;
  std::printf("FAILED line %d: %s: %s\n", line, what, cudaGetErrorString(status));
  std::fflush(stdout);
  std::exit(1);
}
#define CHECK_CUDA(call) ::topknot::bench::check_cuda((call), #call, __LINE__)

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(int64_t count) : count_(count) {
    CHECK_CUDA(cudaMalloc(&data_, static_cast<size_t>(std::max<int64_t>(count, 1)) * sizeof(T)));
  }
  explicit DeviceArray(const std::vector<T>& values)
      : DeviceArray(static_cast<int64_t>(values.size())) {
    copy_from(values);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  T* get() const { return data_; }
  int64_t count() const { return count_; }
  size_t bytes() const { return static_cast<size_t>(count_) * sizeof(T); }
  void copy_from(const std::vector<T>& values) {
    CHECK_CUDA(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  std::vector<T> to_host() const {
    std::vector<T> values(static_cast<size_t>(count_));
    CHECK_CUDA(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost));
    return values;
  }
  // Bytes 0xff: NaN as bf16 and as f32.
  void poison() { CHECK_CUDA(cudaMemset(data_, 0xff, bytes())); }

 private:
  T* data_ = nullptr;
  int64_t count_;
};

// Median time of one call in microseconds: `calls` different calls in one graph, replayed.
inline double median_us(int calls, const std::function<void(int, cudaStream_t)>& call,
                        int replays = 15) {
  cudaStream_t stream;
  CHECK_CUDA(cudaStreamCreate(&stream));
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < calls; ++i) call(i, stream);
  CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
  CHECK_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  cudaEvent_t begin, end;
  CHECK_CUDA(cudaEventCreate(&begin));
  CHECK_CUDA(cudaEventCreate(&end));
  std::vector<double> times;
  for (int i = -2; i < replays; ++i) {
    CHECK_CUDA(cudaEventRecord(begin, stream));
    CHECK_CUDA(cudaGraphLaunch(executable, stream));
    CHECK_CUDA(cudaEventRecord(end, stream));
    CHECK_CUDA(cudaEventSynchronize(end));
    float ms = 0;
    CHECK_CUDA(cudaEventElapsedTime(&ms, begin, end));
    if (i >= 0) times.push_back(1e3 * static_cast<double>(ms) / calls);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

__global__ void __launch_bounds__(256) read_all(const uint4* data, int64_t count, uint32_t* out) {
  uint32_t sum = 0;
  const int64_t step = static_cast<int64_t>(gridDim.x) * 256;
#pragma unroll 8
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x; i < count; i += step) {
    const uint4 v = __ldg(data + i);
    sum ^= v.x ^ v.y ^ v.z ^ v.w;
  }
  if (sum == 0x12345678u) *out = sum;
}

// Bytes per second at which this device reads `bytes` of memory once.
inline double read_ceiling(const void* data, int64_t bytes, int sms) {
  DeviceArray<uint32_t> out(1);
  const double us = median_us(1, [&](int, cudaStream_t stream) {
    read_all<<<sms * 8, 256, 0, stream>>>(static_cast<const uint4*>(data), bytes / 16, out.get());
  });
  return static_cast<double>(bytes) / us * 1e6;
}

}  // namespace topknot::bench
