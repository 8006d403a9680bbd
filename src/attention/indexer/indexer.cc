#include "attention/indexer/indexer.h"

#include <numeric>

#include "base/assert.h"

namespace topknot::attention {

void select_all(int64_t visible, int64_t topk, int32_t* positions) {
  TOPKNOT_ASSERT(visible <= topk);
  std::iota(positions, positions + visible, 0);
  std::fill(positions + visible, positions + topk, -1);
}

}  // namespace topknot::attention
