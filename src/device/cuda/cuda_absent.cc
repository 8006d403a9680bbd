// The answers of a program built without GPU code.
#include "base/strings.h"
#include "device/cuda/cuda_bandwidth.h"
#include "device/cuda/cuda_facts.h"
#include "device/cuda/gpu.h"

namespace topknot::device {
namespace {

constexpr const char* kProblem = "not built: this program has no GPU code";
constexpr const char* kRemedy = "configure with -DTOPKNOT_CUDA=ON";

Error not_built(std::string_view what, int device) {
  return Error{.code = Code::kUnsupported,
               .what = std::string(what),
               .where = cat("cuda:", device),
               .why = kProblem,
               .fix = kRemedy};
}

}  // namespace

CudaFacts cuda_facts() {
  CudaFacts facts;
  facts.problem = kProblem;
  facts.remedy = kRemedy;
  return facts;
}

Status probe_cuda(int device) { return not_built("cannot probe the GPU", device); }

Result<CudaBandwidth> measure_cuda_bandwidth(int device, double) {
  return not_built("the GPU's bandwidth cannot be measured", device);
}
Result<std::vector<CudaPeer>> measure_cuda_peers(int, double) {
  return not_built("copies between GPUs cannot be measured", 0);
}

// No handle is ever made, so there is none to release.
void release_device_memory(void*) {}
void release_stream(void*) {}
void release_event(void*) {}
void release_graph(void*) {}

Result<DeviceBuffer> DeviceBuffer::allocate(int device, size_t, std::string_view purpose) {
  return not_built(cat("no memory for ", purpose), device);
}
Result<Stream> Stream::create(int device) { return not_built("cannot make a stream", device); }
Stream Stream::borrow(int, void*) { return {}; }
Status Stream::synchronize() const { return not_built("cannot wait for the GPU", device_); }
Status copy_to_device(void*, const void*, size_t, const Stream& stream) {
  return not_built("cannot copy to the GPU", stream.device());
}
Status copy_to_host(void*, const void*, size_t, const Stream& stream) {
  return not_built("cannot copy from the GPU", stream.device());
}
Status fill(void*, unsigned char, size_t, const Stream& stream) {
  return not_built("cannot fill device memory", stream.device());
}
Result<Event> Event::create(int device) { return not_built("cannot make an event", device); }
Status Event::record(const Stream&) const { return not_built("cannot record an event", device_); }
Result<double> Event::elapsed_us(const Event& begin, const Event&) {
  return not_built("cannot read the time between two events", begin.device_);
}
Result<Graph> Graph::capture(const Stream& stream, const std::function<Status()>&) {
  return not_built("cannot capture a graph", stream.device());
}
Status Graph::launch(const Stream& stream) const {
  return not_built("cannot launch a graph", stream.device());
}

}  // namespace topknot::device
