#include "ops/cpu/kernels.h"

namespace topknot::ops {

extern const Kernels kernels_portable;
#if defined(__x86_64__)
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;
#endif

const std::vector<const Kernels*>& available_kernels() {
  static const auto& list = *new std::vector<const Kernels*>([] {
    std::vector<const Kernels*> out;
#if defined(__x86_64__)
    // The sets that -march=x86-64-v4 and x86-64-v3 let the compiler use.
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi2");
    if (v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
      out.push_back(&kernels_avx512);
    }
    if (v3) out.push_back(&kernels_avx2);
#endif
    out.push_back(&kernels_portable);
    return out;
  }());
  return list;
}

std::vector<std::string_view> built_kernels() {
#if defined(__x86_64__)
  return {"avx512", "avx2", "portable"};
#else
  return {"portable"};
#endif
}

const Kernels* find_kernels(std::string_view name) {
  for (const Kernels* kernels : available_kernels()) {
    if (name == kernels->name) return kernels;
  }
  return nullptr;
}

}  // namespace topknot::ops
