// The tiled kernel as a kernel: what it takes of a multiprocessor, for one row format and tile.
#pragma once

#include "attention/backends/portable/tiled_mla.cuh"

namespace topknot::attention::portable {

// 64 heads keep 72 registers of queries and 128 of sums: 255, so one block to a multiprocessor. 16
// heads fit 128 registers, and where shared memory allows a second block fills the first one's
// waits.
template <class Rows, int kHeadGroups>
__global__ void __launch_bounds__(kThreads, kHeadGroups == 1 ? 2 : 1)
    tiled_mla(const __grid_constant__ MlaKernelArgs args) {
  // Fragments ahead of their use, measured on an H200: prefill with 64 heads takes 4.99 ms without
  // any, 4.69 with one step of keys, 4.60 with two; values ahead cost registers that are not there.
  constexpr int kKeyAhead = kHeadGroups == 4 ? 2 : 1;
  constexpr int kValueAhead = kHeadGroups == 4 ? 0 : 2;
  tiled_mla_block<Rows, kHeadGroups, kKeyAhead, kValueAhead, true>(args);
}

}  // namespace topknot::attention::portable
