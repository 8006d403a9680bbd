#include "device/cuda/probe.h"

namespace topknot::device {
namespace {

constexpr int kThreads = 256;

__global__ void add_vectors(AddVectorsArgs args) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  if (i < args.count) args.sum[i] = args.a[i] + args.b[i];
}

}  // namespace

cudaError_t launch_add_vectors(const AddVectorsArgs& args) {
  add_vectors<<<(args.count + kThreads - 1) / kThreads, kThreads>>>(args);
  return cudaGetLastError();
}

}  // namespace topknot::device
