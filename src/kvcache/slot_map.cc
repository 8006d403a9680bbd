#include "kvcache/slot_map.h"

#include "base/assert.h"

namespace topknot::kvcache {
namespace {

constexpr int64_t kMaxSlot = INT32_MAX;

}  // namespace

int64_t map_slots(const SlotMapArgs& args) {
  TOPKNOT_ASSERT(args.page_tokens > 0);
  int64_t out_of_range = 0;
  for (int64_t t = 0; t < args.tokens; ++t) {
    const int64_t table = int64_t{args.requests[static_cast<size_t>(t)]} * args.max_pages;
    int32_t valid = 0;
    for (int64_t i = 0; i < args.width; ++i) {
      const auto at = static_cast<size_t>(t * args.width + i);
      const int32_t position = args.positions[at];
      int64_t slot = kNoSlot;
      if (position >= 0) {
        const int64_t page_index = position / args.page_tokens;
        const int32_t page = page_index < args.max_pages
                                 ? args.block_table[static_cast<size_t>(table + page_index)]
                                 : -1;
        slot = int64_t{page} * args.page_tokens + position % args.page_tokens;
        if (page >= 0 && slot <= kMaxSlot) {
          ++valid;
        } else {
          slot = kNoSlot;
          ++out_of_range;
        }
      }
      args.slots[at] = static_cast<int32_t>(slot);
    }
    if (!args.valid.empty()) args.valid[static_cast<size_t>(t)] = valid;
  }
  return out_of_range;
}

}  // namespace topknot::kvcache
