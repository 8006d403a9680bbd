#include "device/cuda/cuda_bandwidth.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>

#include "base/strings.h"
#include "base/try.h"
#include "device/cuda/read_bytes.h"
#include "device/cuda/runtime.h"

namespace topknot::device {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBlocksPerSm = 4;  // 4 x 512 threads fill a multiprocessor on every architecture
constexpr uint8_t kFill = 1;     // of every byte

struct DeviceFree {
  void operator()(void* data) const { cudaFree(data); }
};
using DeviceMemory = std::unique_ptr<void, DeviceFree>;
struct HostFree {
  void operator()(void* data) const { cudaFreeHost(data); }
};
using PinnedMemory = std::unique_ptr<void, HostFree>;

Error failed(int device, cudaError_t error) {
  cudaGetLastError();  // clears it, so that the next call does not report it again
  return Error{.code = code_for(error),
               .what = "the GPU's bandwidth cannot be measured",
               .where = cat("cuda:", device),
               .why = cudaGetErrorString(error),
               .fix = remedy_for(error)};
}

// Rounds of one operation on the current device, each waited for. Copies of pinned memory and the
// kernel take milliseconds, so the host's clock is exact enough.
cudaError_t median_rate(uint64_t bytes, double seconds, const std::function<cudaError_t()>& enqueue,
                        uint64_t* bytes_per_second) {
  std::vector<double> rates;
  const auto begin = Clock::now();
  while (true) {
    const auto start = Clock::now();
    if (const auto error = enqueue(); error != cudaSuccess) return error;
    if (const auto error = cudaDeviceSynchronize(); error != cudaSuccess) return error;
    const auto end = Clock::now();
    rates.push_back(static_cast<double>(bytes) /
                    std::chrono::duration<double>(end - start).count());
    const double spent = std::chrono::duration<double>(end - begin).count();
    const size_t rounds = rates.size();
    if (rounds >= kMaxGpuRounds || (rounds >= kMinGpuRounds && spent >= seconds)) break;
  }
  std::sort(rates.begin(), rates.end());
  *bytes_per_second = static_cast<uint64_t>(rates[rates.size() / 2]);
  return cudaSuccess;
}

cudaError_t allocate(uint64_t bytes, DeviceMemory* memory) {
  void* data = nullptr;
  const auto error = cudaMalloc(&data, bytes);
  memory->reset(data);
  return error;
}

// Half of the free memory at most, in whole pieces of 1 MiB.
cudaError_t choose_bytes(uint64_t* bytes) {
  size_t free_bytes = 0, total_bytes = 0;
  const auto error = cudaMemGetInfo(&free_bytes, &total_bytes);
  constexpr uint64_t kPiece = 1 << 20;
  *bytes = std::max(std::min<uint64_t>(kGpuReadBytes, free_bytes / 2) / kPiece * kPiece, kPiece);
  return error;
}

struct ReadOutcome {
  uint64_t bytes_per_second = 0;
  uint32_t sum = 0, expected = 0;
};

cudaError_t measure_read(int device, double seconds, ReadOutcome* out) {
  uint64_t bytes = 0;
  int multiprocessors = 0;
  DeviceMemory data;
  DeviceMemory sum;
  auto error = choose_bytes(&bytes);
  if (error == cudaSuccess) error = allocate(bytes, &data);
  if (error == cudaSuccess) error = allocate(sizeof(uint32_t), &sum);
  if (error == cudaSuccess) error = cudaMemset(data.get(), kFill, bytes);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  }
  if (error != cudaSuccess) return error;
  const ReadBytesArgs args{.data = static_cast<const uint32_t*>(data.get()),
                           .words = bytes / sizeof(uint32_t),
                           .sum = static_cast<uint32_t*>(sum.get()),
                           .blocks = multiprocessors * kBlocksPerSm};
  error = median_rate(
      bytes, seconds, [&] { return launch_read_bytes(args); }, &out->bytes_per_second);
  if (error == cudaSuccess) error = cudaMemset(sum.get(), 0, sizeof(uint32_t));
  if (error == cudaSuccess) error = launch_read_bytes(args);
  if (error == cudaSuccess) {
    error = cudaMemcpy(&out->sum, sum.get(), sizeof(uint32_t), cudaMemcpyDeviceToHost);
  }
  constexpr uint32_t kWord = kFill * 0x01010101u;
  out->expected = static_cast<uint32_t>(args.words * kWord);
  return error;
}

cudaError_t measure_copies(double seconds, CudaBandwidth* out) {
  void* pinned = nullptr;
  DeviceMemory there;
  auto error = cudaMallocHost(&pinned, kGpuCopyBytes);
  const PinnedMemory here(error == cudaSuccess ? pinned : nullptr);
  if (error == cudaSuccess) error = allocate(kGpuCopyBytes, &there);
  if (error != cudaSuccess) return error;
  const auto copy = [&](void* to, const void* from, cudaMemcpyKind kind, uint64_t* rate) {
    return median_rate(
        kGpuCopyBytes, seconds,
        [&] { return cudaMemcpyAsync(to, from, kGpuCopyBytes, kind, nullptr); }, rate);
  };
  error = copy(there.get(), here.get(), cudaMemcpyHostToDevice, &out->host_to_device);
  if (error != cudaSuccess) return error;
  return copy(here.get(), there.get(), cudaMemcpyDeviceToHost, &out->device_to_host);
}

cudaError_t measure_peer(double seconds, CudaPeer* peer) {
  int reaches = 0;
  auto error = cudaDeviceCanAccessPeer(&reaches, peer->from, peer->to);
  if (error != cudaSuccess) return error;
  peer->direct = reaches != 0;
  DeviceMemory from;
  DeviceMemory to;
  error = cudaSetDevice(peer->to);
  if (error == cudaSuccess) error = allocate(kGpuCopyBytes, &to);
  if (error == cudaSuccess) error = cudaSetDevice(peer->from);
  if (error == cudaSuccess) error = allocate(kGpuCopyBytes, &from);
  if (error == cudaSuccess && peer->direct) {
    error = cudaDeviceEnablePeerAccess(peer->to, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled) {
      cudaGetLastError();
      error = cudaSuccess;
    }
  }
  if (error != cudaSuccess) return error;
  return median_rate(
      kGpuCopyBytes, seconds,
      [&] {
        return cudaMemcpyPeerAsync(to.get(), peer->to, from.get(), peer->from, kGpuCopyBytes,
                                   nullptr);
      },
      &peer->bytes_per_second);
}

}  // namespace

Result<CudaBandwidth> measure_cuda_bandwidth(int device, double seconds) {
  const CurrentDevice restore;
  CudaBandwidth out;
  ReadOutcome read;
  auto error = cudaSetDevice(device);
  if (error == cudaSuccess) error = measure_read(device, seconds, &read);
  if (error == cudaSuccess) error = measure_copies(seconds, &out);
  if (error != cudaSuccess) return failed(device, error);
  if (read.sum != read.expected) {
    return Error{.code = Code::kResource,
                 .what = "the GPU does not read its memory correctly",
                 .where = cat("cuda:", device),
                 .why = cat("the sum of its words is ", read.sum, ", not ", read.expected),
                 .fix = "the GPU or its memory may be faulty: check nvidia-smi and the system log"};
  }
  out.read = read.bytes_per_second;
  return out;
}

Result<std::vector<CudaPeer>> measure_cuda_peers(int count, double seconds) {
  const CurrentDevice restore;
  std::vector<CudaPeer> peers;
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) {
      if (from == to) continue;
      CudaPeer peer{.from = from, .to = to};
      const auto error = measure_peer(seconds, &peer);
      if (error != cudaSuccess) return failed(from, error);
      peers.push_back(peer);
    }
  }
  return peers;
}

}  // namespace topknot::device
