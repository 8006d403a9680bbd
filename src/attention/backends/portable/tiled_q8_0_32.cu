// 32 heads of q8_0 rows.
#include "attention/backends/portable/tiled_kernel.cuh"

namespace topknot::attention::portable {

const void* tiled_q8_0_32() { return reinterpret_cast<const void*>(&tiled_mla<Q8Rows<3>, 2>); }

}  // namespace topknot::attention::portable
