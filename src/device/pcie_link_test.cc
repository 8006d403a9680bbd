#include "device/pcie_link.h"

#include <gtest/gtest.h>

#include "device/cpu/fake_root.h"

namespace topknot::device {
namespace {

TEST(PcieLink, IsReadWhereTheKernelTells) {
  const FakeRoot root;
  const std::string folder = "sys/bus/pci/devices/0000:c1:00.0/";
  root.write(folder + "current_link_width", "4\n");
  root.write(folder + "max_link_width", "16\n");
  root.write(folder + "current_link_speed", "2.5 GT/s PCIe\n");
  root.write(folder + "max_link_speed", "32.0 GT/s PCIe\n");
  const PcieLink link = pcie_link("0000:C1:00.0", root.path());
  EXPECT_EQ(link.width, 4);
  EXPECT_EQ(link.max_width, 16);
  EXPECT_EQ(link.speed, "2.5 GT/s PCIe");
  EXPECT_EQ(link.max_speed, "32.0 GT/s PCIe");
}

TEST(PcieLink, IsUnknownWhereItDoesNot) {
  const FakeRoot root;
  root.write("sys/bus/pci/devices/0000:01:00.0/current_link_width", "255\n");
  const PcieLink link = pcie_link("0000:01:00.0", root.path());
  EXPECT_EQ(link.width, 0);
  EXPECT_EQ(link.max_width, 0);
  EXPECT_EQ(link.speed, "");
}

}  // namespace
}  // namespace topknot::device
