#include "kernels/check.h"

namespace topknot::kernels {

Status check_range(const char* function, const char* name, int64_t value, int64_t low,
                   int64_t high) {
  if (value >= low && value <= high) return {};
  return invalid(function, cat(name, " is ", value, ", of ", low, " to ", high));
}

Status check_pointer(const char* function, const char* name, const void* pointer) {
  constexpr uintptr_t kAlignment = 16;
  if (pointer == nullptr) return invalid(function, cat(name, " is null"));
  if (reinterpret_cast<uintptr_t>(pointer) % kAlignment == 0) return {};
  return invalid(function, cat(name, " is not aligned to ", kAlignment, " bytes"));
}

}  // namespace topknot::kernels
