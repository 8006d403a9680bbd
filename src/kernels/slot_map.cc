// topknot_slot_map: the kernel behind a C function.
#include <cuda_runtime_api.h>

#include "base/try.h"
#include "device/cuda/cuda_error.h"
#include "kernels/check.h"
#include "kernels/failure.h"
#include "kvcache/cuda/cuda_slot_map.h"

namespace topknot::kernels {
namespace {

Status map_slots(const topknot_slot_map_args* args, void* stream) {
  constexpr const char* kName = "topknot_slot_map";
  TOPKNOT_CHECK_OK(check_struct(args, kName));
  TOPKNOT_CHECK_OK(check_range(kName, "tokens", args->tokens, 0, kMostTokens));
  TOPKNOT_CHECK_OK(check_range(kName, "width", args->width, 0, kMostSlots));
  TOPKNOT_CHECK_OK(check_range(kName, "max_pages", args->max_pages, 0, kMostSlots));
  TOPKNOT_CHECK_OK(check_range(kName, "page_tokens", args->page_tokens, 1, kMostSlots - 1));
  if (args->tokens == 0) return {};
  TOPKNOT_CHECK_OK(check_pointer(kName, "requests", args->requests));
  if (args->width > 0) {
    TOPKNOT_CHECK_OK(check_pointer(kName, "positions", args->positions));
    TOPKNOT_CHECK_OK(check_pointer(kName, "slots", args->slots));
  }
  if (args->max_pages > 0) {
    TOPKNOT_CHECK_OK(check_pointer(kName, "block_table", args->block_table));
  }
  static_assert(sizeof(unsigned long long) == sizeof(uint64_t));
  const auto launched = kvcache::launch_slot_map(
      {.positions = args->positions,
       .requests = args->requests,
       .block_table = args->block_table,
       .slots = args->slots,
       .valid = args->valid,
       .out_of_range = reinterpret_cast<unsigned long long*>(args->out_of_range),
       .tokens = args->tokens,
       .width = args->width,
       .max_pages = args->max_pages,
       .page_tokens = args->page_tokens},
      static_cast<cudaStream_t>(stream));
  int device = 0;
  cudaGetDevice(&device);
  return device::cuda_status(launched, device, "the slot map cannot be launched");
}

}  // namespace
}  // namespace topknot::kernels

extern "C" topknot_status topknot_slot_map(const topknot_slot_map_args* args, void* stream) {
  return topknot::kernels::guarded([&] { return topknot::kernels::map_slots(args, stream); });
}
