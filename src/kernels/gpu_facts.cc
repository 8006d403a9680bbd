#include "kernels/gpu_facts.h"

#include "base/strings.h"
#include "device/cuda/cuda_facts.h"
#include "kernels/failure.h"

namespace topknot::kernels {

using capability::Fact;
using capability::Facts;
using capability::KvFormat;

Result<Facts> gpu_facts(int device, const char* function) {
  const device::CudaFacts found = device::cuda_facts();
  for (const device::CudaDevice& gpu : found.devices) {
    if (gpu.index != device) continue;
    return Facts()
        .set(Fact::kDevice, capability::DeviceKind::kCuda)
        .set(Fact::kSm, gpu.sm)
        .set(Fact::kSmemPerBlock, gpu.shared_memory_per_block);
  }
  return Error{
      .code = Code::kNotFound,
      .what = cat("no GPU cuda:", device),
      .where = function,
      .why = found.devices.empty() ? found.problem : cat(found.devices.size(), " GPUs are visible"),
      .fix = found.devices.empty() ? found.remedy : "check CUDA_VISIBLE_DEVICES"};
}

Result<KvFormat> row_format(topknot_row_format format, const char* function) {
  switch (format) {
    case TOPKNOT_ROWS_BF16: return KvFormat::kBf16;
    case TOPKNOT_ROWS_FP8_DS: return KvFormat::kFp8Ds;
    case TOPKNOT_ROWS_Q8_0: return KvFormat::kQ8_0;
    default: return invalid(function, cat("row_format is ", format, ", of 1 to 3"));
  }
}

}  // namespace topknot::kernels
