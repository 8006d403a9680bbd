// Whether this program has GPU code: what implementations for a GPU are refused with where not.
#pragma once

#include "capability/rules.h"

namespace topknot::capability {

#ifdef TOPKNOT_GPU_CODE
inline constexpr const Missing* kGpuCodeMissing = nullptr;
#else
inline constexpr Missing kBuiltWithoutGpuCode = {"this program was built without GPU code",
                                                 "configure with -DTOPKNOT_CUDA=ON"};
inline constexpr const Missing* kGpuCodeMissing = &kBuiltWithoutGpuCode;
#endif

}  // namespace topknot::capability
