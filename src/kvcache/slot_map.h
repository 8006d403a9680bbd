// Positions to physical slots through the block table: the "virtual block table of page size 1".
// After it no kernel knows about pages.
#pragma once

#include <cstdint>
#include <span>

namespace topknot::kvcache {

inline constexpr int32_t kNoSlot = -1;  // an empty entry; kernels skip it

//   positions    i32 [tokens, width]         logical, in the token's own sequence; negative = none
//   requests     i32 [tokens]                which row of the block table
//   block_table  i32 [requests, max_pages]   page ids; negative = no page
//   slots        i32 [tokens, width]         page * page_tokens + offset, same order; -1 = none
//   valid        i32 [tokens]                entries of the row that are not -1: the virtual
//                                            sequence length; may be empty
// A position beyond the table, on a page that is not there, or whose slot does not fit 32 bits
// becomes -1. Returns how many did: more than 0 is a bug of the caller, who asserts on it in debug
// builds. Any page size; in place is allowed.
struct SlotMapArgs {
  std::span<const int32_t> positions;
  std::span<const int32_t> requests;
  std::span<const int32_t> block_table;
  int64_t tokens = 0;
  int64_t width = 0;
  int64_t max_pages = 0;
  int32_t page_tokens = 0;
  std::span<int32_t> slots;
  std::span<int32_t> valid;
};

int64_t map_slots(const SlotMapArgs& args);

}  // namespace topknot::kvcache
