// 16 heads of bf16 rows.
#include "attention/backends/portable/tiled_kernel.cuh"

namespace topknot::attention::portable {

const void* tiled_bf16_16() { return reinterpret_cast<const void*>(&tiled_mla<Bf16Rows, 1>); }

}  // namespace topknot::attention::portable
