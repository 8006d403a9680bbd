// Positions to physical slots on a GPU; the contract of ../slot_map.h, which is the oracle.
//   positions    i32 [tokens, width]        negative = none
//   requests     i32 [tokens]
//   block_table  i32 [requests, max_pages]  negative = no page
//   slots        i32 [tokens, width]        page * page_tokens + offset, in the same order; -1 =
//   none valid        i32 [tokens]               entries of the row that are not -1; may be null
//   out_of_range u64 [1]                    grows by one for each position beyond the table, on a
//                                           page that is not there, or whose slot does not fit 32
//                                           bits; may be null
// Device memory; slots may be positions, nothing else aliases. Any page size.
// Enqueues on `stream` and returns the launch status.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace topknot::kvcache {

struct CudaSlotMapArgs {
  const int32_t* positions;
  const int32_t* requests;
  const int32_t* block_table;
  int32_t* slots;
  int32_t* valid;
  unsigned long long* out_of_range;
  int64_t tokens;
  int64_t width;
  int64_t max_pages;
  int32_t page_tokens;
};
cudaError_t launch_slot_map(const CudaSlotMapArgs& args, cudaStream_t stream);

}  // namespace topknot::kvcache
