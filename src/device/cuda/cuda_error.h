// What the CUDA runtime says, as an Error. For code that is built with the CUDA toolkit only.
#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "topknot/error.h"

namespace topknot::device {

// kUnsupported where the program lacks code for the GPU, kNotFound where there is no such GPU,
// kResource for the rest.
Code cuda_code(cudaError_t error);
// What the user can do about it.
std::string cuda_remedy(cudaError_t error);

// `what` failed on GPU `device`: "no memory for the key cache". Clears the runtime's last error, so
// that the next call does not report it again. Fine for cudaSuccess, which is no error.
Status cuda_status(cudaError_t error, int device, std::string_view what);

}  // namespace topknot::device
