// Memory, streams, events and graphs of a GPU as values that release what they hold. Handles are
// the CUDA runtime's, as void*, so that every layer may read this header; a program without GPU
// code answers kUnsupported. Move-only; an object that was moved from holds nothing.
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>

#include "topknot/error.h"

namespace topknot::device {

// Owns one handle, which `release` gives back; never throws.
template <void (*release)(void* handle)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(void* handle) : handle_(handle) {}
  Handle(Handle&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (handle_ != nullptr) release(handle_);
  }
  void* get() const { return handle_; }

 private:
  void* handle_ = nullptr;
};

void release_device_memory(void* data);
void release_stream(void* stream);
void release_event(void* event);
void release_graph(void* graph);

// Device memory, at least 256-byte aligned, not cleared.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  // `purpose` completes "no memory for ..." when the GPU has none: kResource.
  static Result<DeviceBuffer> allocate(int device, size_t bytes, std::string_view purpose);

  size_t bytes() const { return bytes_; }
  void* data() const { return memory_.get(); }
  template <class T>
  T* as() const {
    return static_cast<T*>(memory_.get());
  }

 private:
  Handle<release_device_memory> memory_;
  size_t bytes_ = 0;
};

// A queue of work, not tied to the default stream.
class Stream {
 public:
  static Result<Stream> create(int device);
  // A stream of somebody else, who keeps it alive; null is the default stream.
  static Stream borrow(int device, void* stream);
  void* get() const { return stream_; }  // a cudaStream_t
  int device() const { return device_; }
  // Waits; reports what any earlier work of the stream ran into.
  Status synchronize() const;

 private:
  Handle<release_stream> owned_;
  void* stream_ = nullptr;
  int device_ = 0;
};

// Both return when the copy is done.
Status copy_to_device(void* to, const void* from, size_t bytes, const Stream& stream);
Status copy_to_host(void* to, const void* from, size_t bytes, const Stream& stream);
// Enqueues; every byte becomes `value`.
Status fill(void* data, unsigned char value, size_t bytes, const Stream& stream);

// A moment of a stream.
class Event {
 public:
  static Result<Event> create(int device);
  Status record(const Stream& stream) const;
  // From `begin` to `end`, both recorded and reached.
  static Result<double> elapsed_us(const Event& begin, const Event& end);

 private:
  Handle<release_event> event_;
  int device_ = 0;
};

// Work recorded once and replayed with one call.
class Graph {
 public:
  // Records what `enqueue` puts on `stream` instead of running it.
  static Result<Graph> capture(const Stream& stream, const std::function<Status()>& enqueue);
  Status launch(const Stream& stream) const;

 private:
  Handle<release_graph> graph_;  // a cudaGraphExec_t
};

}  // namespace topknot::device
