#include "capability/device_facts.h"

namespace topknot::capability {

Facts device_facts(const device::DeviceFacts& device) {
  Facts facts;
  facts.set(Fact::kDevice, device.kind);
  if (device.sm) facts.set(Fact::kSm, *device.sm);
  if (device.shared_memory_per_block_bytes) {
    facts.set(Fact::kSmemPerBlock, *device.shared_memory_per_block_bytes);
  }
  return facts;
}

}  // namespace topknot::capability
