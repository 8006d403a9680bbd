// What a device is, for every layer that asks.
#pragma once

#include <cstdint>

namespace topknot::device {

enum class DeviceKind : int64_t { kCpu, kCuda };

}  // namespace topknot::device
