// 32 heads of fp8_ds rows.
#include "attention/backends/portable/tiled_kernel.cuh"

namespace topknot::attention::portable {

const void* tiled_fp8_ds_32() { return reinterpret_cast<const void*>(&tiled_mla<Fp8DsRows, 2>); }

}  // namespace topknot::attention::portable
