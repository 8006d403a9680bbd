#include "device/machine.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <regex>

#include "base/json_reader.h"
#include "base/mapped_file.h"

namespace topknot::device {
namespace {

using testing::HasSubstr;

constexpr const char* kSmall = R"({
  "name": "two cards",
  "host": {"cores": 8, "memory_bytes": 64e9},
  "devices": [{"kind": "cuda", "name": "card", "count": 2, "sm": 120, "memory_bytes": 1000},
              {"kind": "cpu", "name": "host"}],
  "links": {"between_devices": "pcie", "between_devices_bytes_per_second": 63e9},
  "sources": {"devices[0]": "vendor: a", "devices[0].memory_bytes": "measured: b"}
})";

std::string why(const std::string& text) {
  const auto machine = parse_machine(text, "x.json");
  return machine ? "" : machine.error().why;
}

TEST(Machine, WhatIsNotStatedIsUnknown) {
  const auto machine = parse_machine(kSmall, "x.json");
  ASSERT_TRUE(machine) << machine.error().to_string();
  ASSERT_EQ(machine->devices.size(), 3u);
  const DeviceFacts& card = machine->devices[1];
  EXPECT_EQ(card.sm, 120);
  EXPECT_EQ(card.memory_bytes, 1000u);
  EXPECT_FALSE(card.shared_memory_per_block_bytes);
  EXPECT_FALSE(card.memory_bytes_per_second);
  EXPECT_FALSE(card.operations_per_second.bf16);
  EXPECT_FALSE(machine->disk_bytes_per_second);
  EXPECT_EQ(machine->links.between_devices, LinkKind::kPcie);
}

TEST(Machine, ACpuHasTheNumbersOfTheHost) {
  const auto machine = parse_machine(kSmall, "x.json");
  ASSERT_TRUE(machine);
  EXPECT_EQ(machine->devices[2].memory_bytes, 64000000000u);
  EXPECT_EQ(machine->devices[2].shares_host_memory, true);
  EXPECT_THAT(why(R"({"name": "a", "devices": [{"kind": "cpu", "name": "b", "memory_bytes": 5}]})"),
              HasSubstr("devices[0].memory_bytes: needs a known key"));
}

TEST(Machine, WritingAndReadingGivesTheSame) {
  const auto machine = parse_machine(kSmall, "x.json");
  ASSERT_TRUE(machine);
  const std::string text = machine_to_json(*machine);
  const auto again = parse_machine(text, "again.json");
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(*machine, *again);
  EXPECT_EQ(machine_to_json(*again), text);
}

TEST(Machine, EveryProblemIsReportedAtOnce) {
  const auto machine = parse_machine(R"({
    "nme": "x", "host": {"memory_bytes": -1, "cors": 4},
    "devices": [{"kind": "gpu", "name": "a"},
                {"kind": "cuda", "name": "b", "sm": "120", "memory_bytes": 10,
                 "memory_usable_bytes": 11, "operations_per_second": {"bf17": 1}}],
    "links": {"between_devices": "rope"}, "sources": {"a": 3}})",
                                     "x.json");
  ASSERT_FALSE(machine);
  EXPECT_EQ(machine.error().code, Code::kCorrupt);
  EXPECT_EQ(machine.error().where, "x.json");
  for (const char* line :
       {"name: needs a value, found nothing", "host.memory_bytes: needs a whole number of 1 to",
        "host.cors: needs a known key: did you mean 'cores'?",
        "devices[0].kind: needs cpu or cuda, found gpu",
        "devices[1].sm: needs a whole number of 10 to 999, found \"120\"",
        "devices[1].memory_usable_bytes: needs at most memory_bytes, 10, found 11",
        "devices[1].operations_per_second.bf17: needs a known key: did you mean 'bf16'?",
        "links.between_devices: needs pcie, nvlink or network, found rope",
        "sources.a: needs a text, found 3", "nme: needs a known key: did you mean 'name'?"}) {
    EXPECT_THAT(machine.error().why, HasSubstr(line));
  }
}

TEST(Machine, NeedsADeviceAndAtMostSoMany) {
  EXPECT_THAT(why(R"({"name": "a", "devices": []})"), HasSubstr("at least one device"));
  EXPECT_THAT(why(R"({"name": "a", "devices": [
                    {"kind": "cuda", "name": "b", "count": 1024}, {"kind": "cpu", "name": "c"}]})"),
              HasSubstr("at most 1024 in all"));
}

TEST(Machine, OneDeviceStandsForAnyNumber) {
  const Machine card = read_machine("rtx-pro-6000").value();
  const auto eight = with_device_count(card, 8);
  ASSERT_TRUE(eight);
  EXPECT_EQ(eight->devices.size(), 8u);
  EXPECT_EQ(eight->devices[7], card.devices[0]);
  EXPECT_TRUE(with_device_count(*eight, 8));
  const auto four = with_device_count(*eight, 4);
  ASSERT_FALSE(four);
  EXPECT_EQ(four.error().code, Code::kUnsupported);
  EXPECT_FALSE(with_device_count(card, 0));
}

TEST(Machine, TheNearestKeyAboveANumberNamesItsSource) {
  const auto machine = parse_machine(kSmall, "x.json");
  ASSERT_TRUE(machine);
  EXPECT_EQ(source_of(*machine, "devices[0].sm"), "vendor: a");
  EXPECT_EQ(source_of(*machine, "devices[0].memory_bytes"), "measured: b");
  EXPECT_EQ(source_of(*machine, "devices[0].memory_bytes_per_second"), "vendor: a");
  EXPECT_EQ(source_of(*machine, "devices[01].sm"), "");
  EXPECT_EQ(source_of(*machine, "host.cores"), "");
}

TEST(Machine, OfThisComputerKeepsUnknownNumbersUnknown) {
  HostFacts host;
  host.cpu_name = "unknown";
  host.cores = 3;
  host.memory.total_bytes = 100;
  CudaFacts cuda;
  cuda.devices.push_back({.index = 0, .name = "card", .sm = 90, .memory_total_bytes = 7});
  const Machine machine = machine_of(host, cuda);
  ASSERT_EQ(machine.devices.size(), 2u);
  EXPECT_EQ(machine.devices[0].kind, DeviceKind::kCuda);
  EXPECT_EQ(machine.devices[0].sm, 90);
  EXPECT_EQ(machine.devices[0].memory_bytes, 7u);
  EXPECT_FALSE(machine.devices[0].l2_bytes);
  EXPECT_FALSE(machine.devices[0].memory_bytes_per_second);
  EXPECT_EQ(machine.devices[1].memory_bytes, 100u);
  EXPECT_FALSE(machine.host.name);
  EXPECT_FALSE(machine.host.sockets);
  EXPECT_FALSE(machine.host.memory_bytes_per_second);
  EXPECT_EQ(machine.host.cores, 3);
}

TEST(Machine, ThisOneCanBeWrittenAndRead) {
  const Machine machine = this_machine();
  ASSERT_FALSE(machine.devices.empty());
  EXPECT_GT(machine.host.memory_bytes.value_or(0), 0u);
  const auto again = parse_machine(machine_to_json(machine), "this.json");
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(machine_to_json(*again), machine_to_json(machine));
}

// Opt-in limit of shared memory per block by compute capability: CUDA C++ Programming Guide.
const std::map<int, uint64_t> kSharedMemory = {{80, 166912},  {86, 101376},  {89, 101376},
                                               {90, 232448},  {100, 232448}, {103, 232448},
                                               {120, 101376}, {121, 101376}};

class ShippedMachine : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto machine = read_machine(GetParam());
    ASSERT_TRUE(machine) << machine.error().to_string();
    machine_ = *machine;
  }
  Machine machine_;
};

// Keys of all numbers below `json`.
void list_numbers(const Json& json, const std::string& path, std::vector<std::string>* out) {
  if (json.is_number()) out->push_back(path);
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      list_numbers(value, path.empty() ? key : path + "." + key, out);
    }
  }
  if (json.is_array()) {
    for (size_t i = 0; i < json.size(); ++i) {
      list_numbers(json[i], path + "[" + std::to_string(i) + "]", out);
    }
  }
}

TEST_P(ShippedMachine, EveryNumberHasASourceOfAKnownKind) {
  const std::regex form("(vendor|measured|computed|secondary|chosen): .{4,}");
  std::vector<std::string> numbers;
  list_numbers(*parse_json(machine_to_json(machine_), "x"), "", &numbers);
  EXPECT_GE(numbers.size(), 6u);
  for (const std::string& key : numbers) {
    const std::string source(source_of(machine_, key));
    EXPECT_TRUE(std::regex_match(source, form)) << key << " has the source '" << source << "'";
  }
  for (const auto& source : machine_.sources) {
    const std::string& key = source.first;
    EXPECT_TRUE(std::any_of(numbers.begin(), numbers.end(),
                            [&](const std::string& number) { return number.starts_with(key); }))
        << "a source without its number: " << key;
  }
  EXPECT_TRUE(machine_.as_of &&
              std::regex_match(*machine_.as_of, std::regex("20[0-9]{2}-[01][0-9]")));
}

TEST_P(ShippedMachine, IsWrittenAsItIsRead) {
  const auto again = parse_machine(machine_to_json(machine_), "again");
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(*again, machine_);
  EXPECT_EQ(machine_to_json(*again),
            read_text_file(find_machine_file(GetParam()).value(), kMaxJsonFileBytes).value());
}

TEST_P(ShippedMachine, NumbersArePlausible) {
  ASSERT_EQ(machine_.devices.size(), 1u) << "a file of one kind stands for one device";
  const DeviceFacts& device = machine_.devices[0];
  ASSERT_TRUE(device.memory_bytes && device.memory_bytes_per_second);
  EXPECT_GE(*device.memory_bytes, 20'000'000'000u);
  EXPECT_LE(*device.memory_bytes, 2'000'000'000'000u);
  EXPECT_GE(*device.memory_bytes_per_second, 50'000'000'000u);
  EXPECT_LE(*device.memory_bytes_per_second, 10'000'000'000'000u);
  const OperationRates& rates = device.operations_per_second;
  if (device.kind == DeviceKind::kCpu) {
    EXPECT_TRUE(machine_.host.cores && machine_.host.sockets && machine_.host.instructions);
    EXPECT_GE(rates.fp32.value_or(0), 1'000'000'000'000u);
    return;
  }
  ASSERT_TRUE(device.sm && kSharedMemory.contains(*device.sm));
  EXPECT_EQ(device.shared_memory_per_block_bytes, kSharedMemory.at(*device.sm));
  EXPECT_GE(device.sm_count.value_or(0), 40);
  EXPECT_LE(device.sm_count.value_or(0), 200);
  const uint64_t bf16 = rates.bf16.value_or(0);
  EXPECT_TRUE(!rates.bf16 || bf16 > rates.fp32.value_or(0));
  EXPECT_TRUE(!rates.int8 || *rates.int8 >= 2 * bf16 * 99 / 100);
  EXPECT_TRUE(!rates.fp8 || *rates.fp8 == 0 || *rates.fp8 >= 2 * bf16 * 99 / 100);
  EXPECT_TRUE(machine_.links.between_devices_bytes_per_second.has_value());
}

INSTANTIATE_TEST_SUITE_P(All, ShippedMachine,
                         testing::Values("rtx-pro-6000", "rtx-5090", "rtx-4090", "rtx-3090",
                                         "a100-80", "h100", "h200", "b200", "gb10",
                                         "cpu-16-core-desktop", "cpu-12-channel-server",
                                         "cpu-2-socket-server"));

TEST(ShippedMachines, NoneIsLeftOutOfTheTestsAbove) { EXPECT_EQ(machine_names().size(), 12u); }

TEST(ShippedMachines, AMisspeltNameGetsTheNearest) {
  const auto machine = read_machine("rtx-pro-600");
  ASSERT_FALSE(machine);
  EXPECT_EQ(machine.error().code, Code::kNotFound);
  EXPECT_THAT(machine.error().fix, HasSubstr("did you mean 'rtx-pro-6000'?"));
}

}  // namespace
}  // namespace topknot::device
