#include "device/cuda/cuda_bandwidth.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "base/strings.h"
#include "base/try.h"
#include "device/cuda/cuda_error.h"
#include "device/cuda/current_device.h"
#include "device/cuda/gpu.h"
#include "device/cuda/read_bytes.h"

namespace topknot::device {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBlocksPerSm = 4;  // 4 x 512 threads fill a multiprocessor on every architecture
constexpr uint8_t kFill = 1;     // of every byte
constexpr const char* kWhat = "the GPU's bandwidth cannot be measured";
constexpr const char* kPurpose = "measuring bandwidth";

cudaStream_t handle(const Stream& stream) { return static_cast<cudaStream_t>(stream.get()); }

// Host memory that the GPU reads without a copy in between.
class PinnedBuffer {
 public:
  static Result<PinnedBuffer> allocate(int device, size_t bytes) {
    const CurrentDevice current(device);
    void* data = nullptr;
    TOPKNOT_CHECK_OK(cuda_status(cudaMallocHost(&data, bytes), device, kWhat));
    PinnedBuffer buffer;
    buffer.memory_ = Handle<release>(data);
    return buffer;
  }
  void* data() const { return memory_.get(); }

 private:
  static void release(void* data) { cudaFreeHost(data); }
  Handle<release> memory_;
};

// The median rate of rounds of one operation, between two events of the stream.
Result<uint64_t> median_rate(int device, const Stream& stream, uint64_t bytes, double seconds,
                             const std::function<cudaError_t()>& enqueue) {
  TOPKNOT_TRY(const Event begin, Event::create(device));
  TOPKNOT_TRY(const Event end, Event::create(device));
  std::vector<double> rates;
  const auto started = Clock::now();
  const auto enough = [&] {
    if (rates.size() < kMinGpuRounds) return false;
    const double spent = std::chrono::duration<double>(Clock::now() - started).count();
    return spent >= seconds || rates.size() >= kMaxGpuRounds;
  };
  while (!enough()) {
    TOPKNOT_CHECK_OK(begin.record(stream));
    TOPKNOT_CHECK_OK(cuda_status(enqueue(), device, kWhat));
    TOPKNOT_CHECK_OK(end.record(stream));
    TOPKNOT_CHECK_OK(stream.synchronize());
    TOPKNOT_TRY(const double us, Event::elapsed_us(begin, end));
    rates.push_back(static_cast<double>(bytes) / (std::max(us, 1e-3) / 1e6));
  }
  std::sort(rates.begin(), rates.end());
  return static_cast<uint64_t>(rates[rates.size() / 2]);
}

// Half of the free memory at most, in whole pieces of 1 MiB.
Result<uint64_t> choose_bytes(int device) {
  size_t free_bytes = 0, total_bytes = 0;
  TOPKNOT_CHECK_OK(cuda_status(cudaMemGetInfo(&free_bytes, &total_bytes), device, kWhat));
  constexpr uint64_t kPiece = 1 << 20;
  return std::max(std::min<uint64_t>(kGpuReadBytes, free_bytes / 2) / kPiece * kPiece, kPiece);
}

// Runs the kernel once more and compares its sum.
Status check_sum(int device, const ReadBytesArgs& args, const Stream& stream) {
  uint32_t sum = 0;
  TOPKNOT_CHECK_OK(fill(args.sum, 0, sizeof(sum), stream));
  TOPKNOT_CHECK_OK(cuda_status(launch_read_bytes(args, handle(stream)), device, kWhat));
  TOPKNOT_CHECK_OK(copy_to_host(&sum, args.sum, sizeof(sum), stream));
  const auto expected = static_cast<uint32_t>(args.words * (kFill * 0x01010101u));
  if (sum == expected) return {};
  return Error{.code = Code::kResource,
               .what = "the GPU does not read its memory correctly",
               .where = cat("cuda:", device),
               .why = cat("the sum of its words is ", sum, ", not ", expected),
               .fix = "the GPU or its memory may be faulty: check nvidia-smi and the system log"};
}

Result<uint64_t> measure_read(int device, const Stream& stream, double seconds) {
  TOPKNOT_TRY(const uint64_t bytes, choose_bytes(device));
  TOPKNOT_TRY(const DeviceBuffer data, DeviceBuffer::allocate(device, bytes, kPurpose));
  TOPKNOT_TRY(const DeviceBuffer sum, DeviceBuffer::allocate(device, sizeof(uint32_t), kPurpose));
  TOPKNOT_CHECK_OK(fill(data.data(), kFill, bytes, stream));
  int multiprocessors = 0;
  TOPKNOT_CHECK_OK(
      cuda_status(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
                  device, kWhat));
  const ReadBytesArgs args{.data = data.as<uint32_t>(),
                           .words = bytes / sizeof(uint32_t),
                           .sum = sum.as<uint32_t>(),
                           .blocks = multiprocessors * kBlocksPerSm};
  TOPKNOT_CHECK_OK(check_sum(device, args, stream));
  return median_rate(device, stream, bytes, seconds,
                     [&] { return launch_read_bytes(args, handle(stream)); });
}

Result<CudaPeer> measure_peer(int from, int to, double seconds) {
  CudaPeer peer{.from = from, .to = to};
  int reaches = 0;
  const CurrentDevice current(from);
  TOPKNOT_CHECK_OK(cuda_status(cudaDeviceCanAccessPeer(&reaches, from, to), from, kWhat));
  peer.direct = reaches != 0;
  if (peer.direct) {
    auto error = cudaDeviceEnablePeerAccess(to, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled) {
      cudaGetLastError();  // clears it: no failure
      error = cudaSuccess;
    }
    TOPKNOT_CHECK_OK(cuda_status(error, from, kWhat));
  }
  TOPKNOT_TRY(const Stream stream, Stream::create(from));
  TOPKNOT_TRY(const DeviceBuffer source, DeviceBuffer::allocate(from, kGpuCopyBytes, kPurpose));
  TOPKNOT_TRY(const DeviceBuffer target, DeviceBuffer::allocate(to, kGpuCopyBytes, kPurpose));
  TOPKNOT_TRY(peer.bytes_per_second, median_rate(from, stream, kGpuCopyBytes, seconds, [&] {
                return cudaMemcpyPeerAsync(target.data(), to, source.data(), from, kGpuCopyBytes,
                                           handle(stream));
              }));
  return peer;
}

}  // namespace

Result<CudaBandwidth> measure_cuda_bandwidth(int device, double seconds) {
  const CurrentDevice current(device);
  TOPKNOT_CHECK_OK(cuda_status(current.error(), device, kWhat));
  TOPKNOT_TRY(const Stream stream, Stream::create(device));
  CudaBandwidth out;
  TOPKNOT_TRY(out.read, measure_read(device, stream, seconds));
  TOPKNOT_TRY(const PinnedBuffer here, PinnedBuffer::allocate(device, kGpuCopyBytes));
  TOPKNOT_TRY(const DeviceBuffer there, DeviceBuffer::allocate(device, kGpuCopyBytes, kPurpose));
  const auto copy = [&](void* to, const void* from, cudaMemcpyKind kind) {
    return median_rate(device, stream, kGpuCopyBytes, seconds, [&, to, from, kind] {
      return cudaMemcpyAsync(to, from, kGpuCopyBytes, kind, handle(stream));
    });
  };
  TOPKNOT_TRY(out.host_to_device, copy(there.data(), here.data(), cudaMemcpyHostToDevice));
  TOPKNOT_TRY(out.device_to_host, copy(here.data(), there.data(), cudaMemcpyDeviceToHost));
  return out;
}

Result<std::vector<CudaPeer>> measure_cuda_peers(int count, double seconds) {
  std::vector<CudaPeer> peers;
  for (int from = 0; from < count; ++from) {
    for (int to = 0; to < count; ++to) {
      if (from == to) continue;
      TOPKNOT_TRY(const CudaPeer peer, measure_peer(from, to, seconds));
      peers.push_back(peer);
    }
  }
  return peers;
}

}  // namespace topknot::device
