// What every caller of the CUDA runtime in this folder shares. Host code of builds with GPU code
// only.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "topknot/error.h"

namespace topknot::device {

// What a user can do about it.
std::string remedy_for(cudaError_t error);
Code code_for(cudaError_t error);

// Puts the caller's current device back.
class CurrentDevice {
 public:
  CurrentDevice() {
    if (cudaGetDevice(&saved_) != cudaSuccess) saved_ = 0;
  }
  ~CurrentDevice() { cudaSetDevice(saved_); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int saved_ = 0;
};

}  // namespace topknot::device
