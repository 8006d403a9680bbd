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
  // any, 4.69 with one step of keys, 4.60 with two. What of the values is ahead as well decides
  // with 64 heads whether registers are spilled: none with these numbers from sm_80 to sm_120.
  constexpr int kKeyAhead = kHeadGroups == 4 ? 2 : 1;
  constexpr int kValueAhead = kHeadGroups < 4 ? 2 : Rows::kFormat == RowFormat::kFp8Ds ? 1 : 0;
  tiled_mla_block<Rows, kHeadGroups, kKeyAhead, kValueAhead>(args);
}

}  // namespace topknot::attention::portable
