// The answers of a program built without GPU code.
#include "base/strings.h"
#include "device/cuda/cuda_facts.h"

namespace topknot::device {
namespace {

constexpr const char* kProblem = "not built: this program has no GPU code";
constexpr const char* kRemedy = "configure with -DTOPKNOT_CUDA=ON";

}  // namespace

CudaFacts cuda_facts() {
  CudaFacts facts;
  facts.problem = kProblem;
  facts.remedy = kRemedy;
  return facts;
}

Status probe_cuda(int device) {
  return Error{.code = Code::kUnsupported,
               .what = "cannot probe the GPU",
               .where = cat("cuda:", device),
               .why = kProblem,
               .fix = kRemedy};
}

}  // namespace topknot::device
