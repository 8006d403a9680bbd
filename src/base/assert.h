// TOPKNOT_ASSERT(condition): for what only our own bug can break. On in every build type; prints
// the condition and its place, then aborts. Never for anything a file, a user or a device can
// cause.
#pragma once

namespace topknot {
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);
}

#define TOPKNOT_ASSERT(...)             \
  ((__VA_ARGS__) ? static_cast<void>(0) \
                 : ::topknot::assertion_failed(#__VA_ARGS__, __FILE__, __LINE__))
