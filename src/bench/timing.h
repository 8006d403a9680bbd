// Time of GPU work: one graph that holds every call once, each on its own inputs, replayed.
#pragma once

#include <functional>

#include "device/cuda/cuda_facts.h"
#include "device/cuda/gpu.h"
#include "topknot/error.h"

namespace topknot::bench {

inline constexpr int kReplays = 15;

// kNotFound with the machine's own reason when there is no such GPU.
Result<device::CudaDevice> find_gpu(int cuda_device);

// Median time of one call in microseconds. `enqueue(set)` puts the call on input set `set` of
// `sets` on the stream; different sets keep the data out of the second-level cache.
Result<double> median_us(const device::Stream& stream, int sets,
                         const std::function<Status(int set)>& enqueue, int replays = kReplays);

}  // namespace topknot::bench
