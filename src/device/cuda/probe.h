// The smallest kernel that proves code for this GPU exists and runs.
//   a, b, sum   f32  [count]   device memory; no aliasing
// Enqueues on the default stream and returns the launch status.
#pragma once

#include <cuda_runtime_api.h>

namespace topknot::device {

struct AddVectorsArgs {
  const float* a;
  const float* b;
  float* sum;
  int count;
};
cudaError_t launch_add_vectors(const AddVectorsArgs& args);

}  // namespace topknot::device
