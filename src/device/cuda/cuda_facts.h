// The GPUs as plain data, through the CUDA runtime, which is linked statically: the program starts
// on machines without a driver. Nothing here includes a CUDA header, so every layer may read it.
// The functions exist in every build; one without GPU code answers "not built".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topknot/error.h"

namespace topknot::device {

struct CudaDevice {
  int index = 0;
  std::string name;
  int sm = 0;  // compute capability as one number: 9.0 is 90. Not an order of what a GPU can do.
  int sm_count = 0;
  uint64_t memory_total_bytes = 0;
  uint64_t memory_free_bytes = 0;  // now; other processes share it
  uint64_t memory_bytes_per_second =
      0;                            // from bus width and clock; 0 where the driver does not tell
  int shared_memory_per_block = 0;  // bytes with opt-in; what a kernel's tiles must fit in
  int shared_memory_per_sm = 0;     // bytes
  int l2_cache_bytes = 0;
  std::string pci_bus_id;  // "0000:01:00.0"
};

struct CudaFacts {
  bool built = false;       // this program has GPU code
  int runtime_version = 0;  // 13000 is 13.0; 0 if not built
  int driver_version = 0;   // newest CUDA that the driver supports; 0 without a driver
  std::vector<CudaDevice> devices;
  std::string problem;  // why `devices` is empty; empty otherwise
  std::string remedy;   // what the user can do about it
};

// Creates a context on every GPU (some hundred MB each, once per process): asking for free memory
// does.
CudaFacts cuda_facts();

// Adds two vectors on the GPU and compares with the sum computed here. kUnsupported when the
// program has no code for that GPU; kNotFound when there is no such GPU; kResource for what the
// driver says.
Status probe_cuda(int device);

}  // namespace topknot::device
