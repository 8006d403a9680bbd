// 16 heads of fp8_ds rows.
#include "attention/backends/portable/code_mla.cuh"

namespace topknot::attention::portable {

const void* tiled_fp8_ds_16() { return reinterpret_cast<const void*>(&code_mla); }

}  // namespace topknot::attention::portable
