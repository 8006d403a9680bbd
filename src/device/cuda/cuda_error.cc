#include "device/cuda/cuda_error.h"

#include "base/strings.h"
#include "topknot/version.h"

namespace topknot::device {

std::string cuda_remedy(cudaError_t error) {
  switch (error) {
    case cudaErrorInsufficientDriver:
      return "install an NVIDIA driver for CUDA 13 or newer; without one use --device cpu";
    case cudaErrorNoDevice:
      return "no GPU is visible: check nvidia-smi, CUDA_VISIBLE_DEVICES and, in a container, "
             "--gpus";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
      return cat("this program has GPU code for sm ", build_info().cuda_architectures,
                 ": configure with -DTOPKNOT_CUDA_ARCHITECTURES set to this GPU's");
    case cudaErrorMemoryAllocation: return "another process may hold the memory: check nvidia-smi";
    case cudaErrorDevicesUnavailable:
      return "another process may hold the GPU exclusively: check nvidia-smi";
    default:
      return "check that nvidia-smi works and that the driver is as new as this CUDA runtime";
  }
}

Code cuda_code(cudaError_t error) {
  switch (error) {
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction: return Code::kUnsupported;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice: return Code::kNotFound;
    default: return Code::kResource;
  }
}

Status cuda_status(cudaError_t error, int device, std::string_view what) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();
  return Error{.code = cuda_code(error),
               .what = std::string(what),
               .where = cat("cuda:", device),
               .why = cudaGetErrorString(error),
               .fix = cuda_remedy(error)};
}

}  // namespace topknot::device
