#include "device/pcie_link.h"

#include <algorithm>
#include <cctype>

#include "base/strings.h"
#include "device/cpu/small_file.h"

namespace topknot::device {
namespace {

std::string text_of(const std::string& path) {
  return printable(read_small_file(path).value_or(""), 80);
}

int lanes_of(const std::string& path) {
  constexpr uint64_t kMostLanes = 32;  // 255: the kernel does not know
  const auto lanes = parse_number(text_of(path));
  return lanes && *lanes <= kMostLanes ? static_cast<int>(*lanes) : 0;
}

}  // namespace

PcieLink pcie_link(const std::string& bus_id, const std::string& root) {
  std::string name = bus_id;  // CUDA may write capital letters; the folders are lower case
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const std::string folder = cat(root, "/sys/bus/pci/devices/", name, "/");
  return {.width = lanes_of(folder + "current_link_width"),
          .max_width = lanes_of(folder + "max_link_width"),
          .speed = text_of(folder + "current_link_speed"),
          .max_speed = text_of(folder + "max_link_speed")};
}

}  // namespace topknot::device
