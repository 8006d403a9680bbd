// Everything that an examination found out, as plain data. What was not measured is empty; what
// could not be measured holds the Error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attention/probe.h"
#include "device/cpu/host_facts.h"
#include "device/cpu/read_bandwidth.h"
#include "device/cpu/system_facts.h"
#include "device/cuda/cuda_bandwidth.h"
#include "device/cuda/cuda_facts.h"
#include "device/file_read_rate.h"
#include "device/pcie_link.h"
#include "topknot/error.h"

namespace topknot::doctor {

template <class T>
using Measured = std::optional<Result<T>>;

struct MemoryRates {
  Measured<device::ReadBandwidth> one_thread;
  Measured<device::ReadBandwidth> all_threads;
  // Processors of the first NUMA node, reading their own memory and that of the last node; empty on
  // machines of one node.
  Measured<device::ReadBandwidth> own_node;
  Measured<device::ReadBandwidth> other_node;
};

// Operations in a second of fp32 products, a multiply-add is two; the inner loops of src/ops on a
// tile that stays in the caches.
struct ProductRates {
  std::string kernels;
  uint64_t one_thread = 0;
  uint64_t all_threads = 0;
  int threads = 0;
};

// Bytes of weights in a second that one thread decodes to fp32, from its cache.
struct DecodeRate {
  std::string kernels;
  std::string type;  // "Q4_K"
  uint64_t bytes_per_second = 0;
};

// A set of inner loops, and what keeps it from running.
struct KernelSet {
  std::string name;
  bool runs = false;
  std::vector<std::string> missing;  // instruction sets
};

struct Benchmark {
  uint64_t model_bytes = 0;
  int64_t layers = 0;
  std::string kernels;
  std::string attention_backend;
  bool sparse = false;
  int threads = 0;
  int64_t prompt_tokens = 0;
  double prompt_seconds = 0;
  int64_t tokens = 0;  // decoded
  double seconds = 0;
  uint64_t bytes_per_token = 0;               // that a decoded token reads at least, by the plan
  std::optional<double> least_token_seconds;  // by the plan with the measured rates

  double prompt_rate() const {
    return prompt_seconds > 0 ? double(prompt_tokens) / prompt_seconds : 0;
  }
  double rate() const { return seconds > 0 ? double(tokens) / seconds : 0; }
  double bytes_per_second() const { return rate() * double(bytes_per_token); }
};

struct Gpu {
  device::CudaDevice facts;
  device::PcieLink link;
  std::optional<Error> probe_error;  // none: it computed the right numbers
  Measured<device::CudaBandwidth> bandwidth;
};

struct Findings {
  std::string date;  // "2026-11-30", UTC
  bool quick = false;
  device::SystemFacts system;
  device::HostFacts host;
  device::CudaFacts cuda;
  std::vector<KernelSet> kernels;  // best first
  MemoryRates memory;
  std::vector<ProductRates> products;  // of every set that runs, best first
  std::vector<DecodeRate> decoding;    // of the best set
  std::vector<attention::ProbeResult> probes;
  std::vector<Gpu> gpus;
  Measured<std::vector<device::CudaPeer>> peers;  // empty with fewer than two GPUs
  std::optional<device::FileReadRate> disk;       // empty when no file was named
  Measured<Benchmark> benchmark;
};

}  // namespace topknot::doctor
