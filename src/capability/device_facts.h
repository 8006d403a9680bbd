// What rules ask of a device, out of the facts of a machine. Unknown numbers stay unset.
#pragma once

#include "capability/facts.h"
#include "device/machine.h"

namespace topknot::capability {

// kDevice, kSm, kSmemPerBlock.
Facts device_facts(const device::DeviceFacts& device);

}  // namespace topknot::capability
