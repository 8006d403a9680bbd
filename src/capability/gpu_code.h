// Whether this program has GPU code: what implementations for a GPU are refused with where not.
#pragma once

#include "capability/rules.h"

namespace topknot::capability {

#ifdef TOPKNOT_GPU_CODE
inline constexpr const Missing* kGpuCodeMissing = nullptr;
#else
inline constexpr Missing kBuiltWithoutGpuCode = {"this program was built without it",
                                                 "configure with -DTOPKNOT_CUDA=ON", "build",
                                                 "TOPKNOT_CUDA=ON", "OFF"};
inline constexpr const Missing* kGpuCodeMissing = &kBuiltWithoutGpuCode;
#endif

}  // namespace topknot::capability
