// 64 heads of fp8_ds rows.
#include "attention/backends/portable/tiled_kernel.cuh"

namespace topknot::attention::portable {

const void* tiled_fp8_ds_64() { return reinterpret_cast<const void*>(&tiled_mla<Fp8DsRows, 4>); }

}  // namespace topknot::attention::portable
