// The answers of a program built without GPU code.
#include "base/strings.h"
#include "device/cuda/cuda_bandwidth.h"
#include "device/cuda/cuda_facts.h"

namespace topknot::device {
namespace {

constexpr const char* kProblem = "not built: this program has no GPU code";
constexpr const char* kRemedy = "configure with -DTOPKNOT_CUDA=ON";

Error not_built(const char* what, int device) {
  return Error{.code = Code::kUnsupported,
               .what = what,
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

}  // namespace topknot::device
