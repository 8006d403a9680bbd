#include "device/cuda/gpu.h"

#include <cuda_runtime_api.h>

#include "base/log.h"
#include "base/strings.h"
#include "base/try.h"
#include "device/cuda/cuda_error.h"
#include "device/cuda/current_device.h"

namespace topknot::device {
namespace {

cudaStream_t handle(const Stream& stream) { return static_cast<cudaStream_t>(stream.get()); }

void log_failure(cudaError_t error, const char* what) {
  // At the end of the program the driver may be gone before the last object is.
  if (error == cudaSuccess || error == cudaErrorCudartUnloading) return;
  log_warning("cannot release ", what, ": ", cudaGetErrorString(error));
}

Status copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, const Stream& stream,
            const char* what) {
  TOPKNOT_CHECK_OK(
      cuda_status(cudaMemcpyAsync(to, from, bytes, kind, handle(stream)), stream.device(), what));
  return stream.synchronize();
}

}  // namespace

void release_device_memory(void* data) { log_failure(cudaFree(data), "device memory"); }
void release_stream(void* stream) {
  log_failure(cudaStreamDestroy(static_cast<cudaStream_t>(stream)), "a stream");
}
void release_event(void* event) {
  log_failure(cudaEventDestroy(static_cast<cudaEvent_t>(event)), "an event");
}
void release_graph(void* graph) {
  log_failure(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)), "a graph");
}

Result<DeviceBuffer> DeviceBuffer::allocate(int device, size_t bytes, std::string_view purpose) {
  const CurrentDevice current(device);
  TOPKNOT_CHECK_OK(cuda_status(current.error(), device, cat("no memory for ", purpose)));
  DeviceBuffer buffer;
  void* data = nullptr;
  const auto error = bytes == 0 ? cudaSuccess : cudaMalloc(&data, bytes);
  TOPKNOT_CHECK_OK(
      cuda_status(error, device, cat("no memory for ", purpose, " (", bytes, " bytes)")));
  buffer.memory_ = Handle<release_device_memory>(data);
  buffer.bytes_ = bytes;
  return buffer;
}

Result<Stream> Stream::create(int device) {
  const CurrentDevice current(device);
  TOPKNOT_CHECK_OK(cuda_status(current.error(), device, "cannot make a stream"));
  cudaStream_t stream = nullptr;
  TOPKNOT_CHECK_OK(cuda_status(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), device,
                               "cannot make a stream"));
  Stream out;
  out.owned_ = Handle<release_stream>(stream);
  out.stream_ = stream;
  out.device_ = device;
  return out;
}

Stream Stream::borrow(int device, void* stream) {
  Stream out;
  out.stream_ = stream;
  out.device_ = device;
  return out;
}

Status Stream::synchronize() const {
  return cuda_status(cudaStreamSynchronize(handle(*this)), device_, "work on the GPU failed");
}

Status copy_to_device(void* to, const void* from, size_t bytes, const Stream& stream) {
  return copy(to, from, bytes, cudaMemcpyHostToDevice, stream, "cannot copy to the GPU");
}

Status copy_to_host(void* to, const void* from, size_t bytes, const Stream& stream) {
  return copy(to, from, bytes, cudaMemcpyDeviceToHost, stream, "cannot copy from the GPU");
}

Status fill(void* data, unsigned char value, size_t bytes, const Stream& stream) {
  return cuda_status(cudaMemsetAsync(data, value, bytes, handle(stream)), stream.device(),
                     "cannot fill device memory");
}

Result<Event> Event::create(int device) {
  const CurrentDevice current(device);
  TOPKNOT_CHECK_OK(cuda_status(current.error(), device, "cannot make an event"));
  cudaEvent_t event = nullptr;
  TOPKNOT_CHECK_OK(cuda_status(cudaEventCreate(&event), device, "cannot make an event"));
  Event out;
  out.event_ = Handle<release_event>(event);
  out.device_ = device;
  return out;
}

Status Event::record(const Stream& stream) const {
  return cuda_status(cudaEventRecord(static_cast<cudaEvent_t>(event_.get()), handle(stream)),
                     device_, "cannot record an event");
}

Result<double> Event::elapsed_us(const Event& begin, const Event& end) {
  float ms = 0;
  TOPKNOT_CHECK_OK(
      cuda_status(cudaEventElapsedTime(&ms, static_cast<cudaEvent_t>(begin.event_.get()),
                                       static_cast<cudaEvent_t>(end.event_.get())),
                  begin.device_, "cannot read the time between two events"));
  return static_cast<double>(ms) * 1000;
}

Result<Graph> Graph::capture(const Stream& stream, const std::function<Status()>& enqueue) {
  const auto begun = cudaStreamBeginCapture(handle(stream), cudaStreamCaptureModeThreadLocal);
  TOPKNOT_CHECK_OK(cuda_status(begun, stream.device(), "cannot begin to capture a graph"));
  const Status enqueued = enqueue();
  cudaGraph_t graph = nullptr;
  // Ends the capture in any case: a stream must not stay in that state.
  const auto ended = cudaStreamEndCapture(handle(stream), &graph);
  cudaGraphExec_t executable = nullptr;
  Status made = enqueued ? cuda_status(ended, stream.device(), "cannot capture a graph") : enqueued;
  if (made) {
    made = cuda_status(cudaGraphInstantiate(&executable, graph, 0), stream.device(),
                       "cannot instantiate a graph");
  }
  if (graph != nullptr) log_failure(cudaGraphDestroy(graph), "a captured graph");
  TOPKNOT_CHECK_OK(std::move(made));
  Graph out;
  out.graph_ = Handle<release_graph>(executable);
  return out;
}

Status Graph::launch(const Stream& stream) const {
  return cuda_status(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph_.get()), handle(stream)),
                     stream.device(), "cannot launch a graph");
}

}  // namespace topknot::device
