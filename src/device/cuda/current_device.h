// The CUDA runtime's current device of this thread, changed for a scope.
#pragma once

#include <cuda_runtime_api.h>

namespace topknot::device {

// Puts the caller's current device back at the end.
class CurrentDevice {
 public:
  CurrentDevice() {
    if (cudaGetDevice(&saved_) != cudaSuccess) saved_ = 0;
  }
  explicit CurrentDevice(int device) : CurrentDevice() { error_ = cudaSetDevice(device); }
  ~CurrentDevice() { cudaSetDevice(saved_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  cudaError_t error() const { return error_; }

 private:
  cudaError_t error_ = cudaSuccess;
  int saved_ = 0;
};

}  // namespace topknot::device
