#include "doctor/report.h"

#include <gmock/gmock.h>

#include "doctor/test_support.h"

namespace topknot::doctor {
namespace {

using testing::HasSubstr;

TEST(Report, ItsMachineIsOneThatPlansRead) {
  const Findings found = with_gpus(2);
  const Json json = report_json(found, judge(found));
  const auto read = device::parse_machine(json.dump(), "report.json");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, report_machine(found));
  EXPECT_EQ(read->name, "Example 8-Core Processor with 2 x Example GPU");
  EXPECT_EQ(read->as_of, "2026-11");
  ASSERT_EQ(read->devices.size(), 3u);
  EXPECT_EQ(read->devices[0].memory_bytes_per_second, 1'600'000'000'000u);
  EXPECT_EQ(read->devices[2].kind, device::DeviceKind::kCpu);
  EXPECT_EQ(read->devices[2].memory_bytes_per_second, 50'000'000'000u);
  EXPECT_EQ(read->host.operations_per_second.fp32, 450'000'000'000u);
  EXPECT_EQ(read->links.host_to_device_bytes_per_second, 55'000'000'000u);
  EXPECT_EQ(read->links.between_devices_bytes_per_second, 50'000'000'000u) << "the slowest";
}

TEST(Report, EveryMeasuredNumberSaysSo) {
  Findings found = with_gpus(1);
  found.disk = device::FileReadRate{.bytes = uint64_t{1} << 30, .seconds = 0.5, .direct = true};
  const device::Machine machine = report_machine(found);
  for (const char* key : {"host.memory_bytes_per_second", "host.operations_per_second.fp32",
                          "devices[0].memory_bytes_per_second", "disk_bytes_per_second",
                          "links.host_to_device_bytes_per_second"}) {
    EXPECT_THAT(std::string(device::source_of(machine, key)),
                HasSubstr("measured by topknot doctor on 2026-11-30"))
        << key;
  }
  for (const char* key : {"host.memory_bytes", "devices[0].sm"}) {
    EXPECT_THAT(std::string(device::source_of(machine, key)), HasSubstr("reported by")) << key;
  }
}

TEST(Report, WhatWasNotMeasuredIsUnknownNotZero) {
  Findings found = healthy_host();
  found.memory.all_threads = Result<device::ReadBandwidth>(Error{.what = "it failed"});
  found.products.clear();
  found.disk = device::FileReadRate{.bytes = 4096, .seconds = 1, .direct = true};
  const device::Machine machine = report_machine(found);
  EXPECT_FALSE(machine.host.memory_bytes_per_second.has_value());
  EXPECT_FALSE(machine.host.operations_per_second.fp32.has_value());
  EXPECT_FALSE(machine.disk_bytes_per_second.has_value()) << "4 KiB are no measurement";
  const Json json = report_json(found, judge(found));
  EXPECT_EQ(json["measured"]["memory"]["all_threads"]["error"]["what"], "it failed");
  EXPECT_TRUE(json["measured"]["memory"]["own_node"].is_null());
}

TEST(Report, HoldsNoPlace) {
  Findings found = with_gpus(1);
  const Error error{.code = Code::kIo, .what = "it failed", .where = "/secret/place", .why = "why"};
  found.benchmark = Result<Benchmark>(error);
  found.gpus[0].probe_error = error;
  found.gpus[0].bandwidth = Result<device::CudaBandwidth>(error);
  const Json json = report_json(found, judge(found));
  EXPECT_EQ(json["broken"], true);
  EXPECT_EQ(json.dump().find("secret"), std::string::npos);
}

TEST(Report, TakesWhateverASystemSays) {
  Findings found = healthy_host();
  found.system.os = "bad \xff bytes";
  found.host.cpu_name = "also \xc3( bad";
  found.probes[0].largest_difference = std::numeric_limits<double>::infinity();
  const std::string text = report_json(found, judge(found)).dump();  // throws on invalid UTF-8
  EXPECT_TRUE(device::parse_machine(text, "report.json"));
}

}  // namespace
}  // namespace topknot::doctor
