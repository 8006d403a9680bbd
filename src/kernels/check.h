// What can be checked on the host of what a C caller gives.
#pragma once

#include <cstdint>

#include "base/strings.h"
#include "kernels/failure.h"
#include "topknot/error.h"

namespace topknot::kernels {

inline constexpr int64_t kMostSlots = int64_t{1} << 31;  // a slot is an int32
inline constexpr int64_t kMostTokens = int64_t{1} << 24;

template <class T>
Status check_struct(const T* given, const char* function) {
  if (given == nullptr) return invalid(function, "the struct is null");
  if (given->struct_bytes != static_cast<int64_t>(sizeof(T))) {
    return invalid(function, cat("struct_bytes is ", given->struct_bytes, "; in version ",
                                 TOPKNOT_KERNELS_ABI_VERSION, " it is ", sizeof(T)));
  }
  return {};
}

// Both ends are taken.
Status check_range(const char* function, const char* name, int64_t value, int64_t low,
                   int64_t high);
// Not null, and aligned to 16 bytes.
Status check_pointer(const char* function, const char* name, const void* pointer);

}  // namespace topknot::kernels
