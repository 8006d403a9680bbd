// Findings of a machine that nobody has: every field that a verdict or a report reads is set.
#pragma once

#include <string>

#include "doctor/findings.h"

namespace topknot::doctor {

inline device::ReadBandwidth read_rate(uint64_t bytes_per_second, int threads) {
  return {.bytes_per_second = bytes_per_second, .threads = threads, .bytes = 1 << 28, .rounds = 9};
}

inline attention::ProbeResult probe_of(const char* backend, const char* kernels,
                                       double difference) {
  attention::ProbeResult result;
  result.backend = backend;
  result.kernels = kernels;
  result.selection = "sparse";
  result.largest_difference = difference;
  result.limit = 3e-4;
  return result;
}

inline Findings healthy_host() {
  Findings found;
  found.date = "2026-11-30";
  found.system.os = "Debian GNU/Linux 12 (bookworm)";
  found.system.kernel = "6.1.0";
  found.system.architecture = "x86_64";
  found.system.processors = 16;
  found.system.physical_cores = 8;
  found.system.huge_pages = "madvise";
  found.host.cpu_name = "Example 8-Core Processor";
  found.host.cores = 16;
  found.host.sockets = 1;
  found.host.features.avx2 = found.host.features.fma = true;
  found.host.memory = {.total_bytes = uint64_t{64} << 30, .available_bytes = uint64_t{60} << 30};
  found.host.numa_nodes = {{.index = 0, .memory_bytes = uint64_t{64} << 30, .cpus = "0-15"}};
  found.kernels = {{"avx512", false, {"avx512f"}}, {"avx2", true, {}}, {"portable", true, {}}};
  found.memory.one_thread = Result<device::ReadBandwidth>(read_rate(20'000'000'000, 1));
  found.memory.all_threads = Result<device::ReadBandwidth>(read_rate(50'000'000'000, 16));
  found.products = {{"avx2", 60'000'000'000, 450'000'000'000, 16},
                    {"portable", 15'000'000'000, 110'000'000'000, 16}};
  found.decoding = {{"avx2", "Q4_K", 3'000'000'000}};
  found.probes = {probe_of("cpu_simd", "avx2", 1e-6), probe_of("cpu_simd", "portable", 2e-6)};
  Benchmark run;
  run.model_bytes = 170 << 20;
  run.prompt_tokens = 192;
  run.prompt_seconds = 0.5;
  run.tokens = 48;
  run.seconds = 1;
  run.bytes_per_token = 125'000'000;
  run.attention_backend = "cpu_simd";
  run.kernels = "avx2";
  run.threads = 16;
  found.benchmark = Result<Benchmark>(run);
  return found;
}

inline Gpu healthy_gpu(int index) {
  Gpu gpu;
  gpu.facts.index = index;
  gpu.facts.name = "Example GPU";
  gpu.facts.sm = 120;
  gpu.facts.sm_count = 188;
  gpu.facts.memory_total_bytes = uint64_t{96} << 30;
  gpu.facts.memory_free_bytes = uint64_t{95} << 30;
  gpu.facts.memory_bytes_per_second = 1'792'000'000'000;
  gpu.facts.shared_memory_per_block = 101'376;
  gpu.facts.l2_cache_bytes = 128 << 20;
  gpu.facts.pci_bus_id = "0000:01:00.0";
  gpu.link = {
      .width = 16, .max_width = 16, .speed = "2.5 GT/s PCIe", .max_speed = "32.0 GT/s PCIe"};
  gpu.bandwidth = Result<device::CudaBandwidth>({.read = 1'600'000'000'000,
                                                 .host_to_device = 55'000'000'000,
                                                 .device_to_host = 54'000'000'000});
  return gpu;
}

inline Findings with_gpus(int count) {
  Findings found = healthy_host();
  found.cuda.built = true;
  found.cuda.runtime_version = 13'000;
  found.cuda.driver_version = 13'010;
  found.system.nvidia_gpus = count;
  std::vector<device::CudaPeer> peers;
  for (int i = 0; i < count; ++i) {
    found.gpus.push_back(healthy_gpu(i));
    found.cuda.devices.push_back(found.gpus.back().facts);
    for (int to = 0; to < count; ++to) {
      if (to != i) peers.push_back({i, to, true, 50'000'000'000u + static_cast<uint64_t>(to)});
    }
  }
  if (count > 1) found.peers = Result<std::vector<device::CudaPeer>>(peers);
  return found;
}

}  // namespace topknot::doctor
