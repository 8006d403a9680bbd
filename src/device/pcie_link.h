// The PCI Express link of a card, as the kernel tells it: a card in a slot of four lanes is a
// common reason for slow copies.
#pragma once

#include <string>

namespace topknot::device {

// Zero and empty where the kernel does not tell. An idle card lowers its speed, not its width.
struct PcieLink {
  int width = 0;  // lanes in use
  int max_width = 0;
  std::string speed;  // "16.0 GT/s PCIe", now
  std::string max_speed;
};

// `bus_id` as cuda_facts.h gives it: "0000:01:00.0". `root` as for memory_facts().
PcieLink pcie_link(const std::string& bus_id, const std::string& root = "/");

}  // namespace topknot::device
