// Which tile and how many parts of a list a batch is given. Plain arithmetic over what prepare_*()
// measured, so that tests and benchmarks choose as the backend does.
#pragma once

#include <algorithm>
#include <cstdint>

#include "attention/backends/portable/tile_shape.h"

namespace topknot::attention::portable {

// A tile of 64 heads takes about 1.6 times as long as one of 16 and 1.3 times as long as one of 32
// (H200), so a larger one pays as soon as it saves a pass over the rows.
constexpr int tile_heads_for(int heads) { return heads <= 16 ? 16 : heads <= 32 ? 32 : 64; }

// Parts that a list of up to `rows` rows is cut into, so that the blocks fill the multiprocessors
// once: a second, partial wave costs 10 to 20 %, idle multiprocessors as much as their number.
constexpr int splits_for(int64_t tokens, int heads, int tile_heads, int64_t rows, int slots) {
  const int64_t tiles = std::max<int64_t>(1, (rows + kTileRows - 1) / kTileRows);
  const int64_t blocks = std::max<int64_t>(1, tokens * ((heads + tile_heads - 1) / tile_heads));
  const int64_t splits = std::clamp<int64_t>(slots / blocks, 1, tiles);
  const int64_t per_split = (tiles + splits - 1) / splits;
  return static_cast<int>((tiles + per_split - 1) / per_split);  // none of them empty
}

// The same for contexts of up to `rows` rows, which may differ: the parts are no longer than what
// takes 75 us on an H200, so that one long context among short ones is not left to a few blocks; at
// most `waves` times as many blocks as run at once.
constexpr int dense_splits_for(int64_t tokens, int heads, int tile_heads, int64_t rows, int slots,
                               int waves) {
  constexpr int64_t kPartRows = 2048;
  const int even = splits_for(tokens, heads, tile_heads, rows, slots);
  const int64_t blocks = std::max<int64_t>(1, tokens * ((heads + tile_heads - 1) / tile_heads));
  const int64_t most = std::max<int64_t>(1, int64_t{waves} * slots / blocks);
  const int64_t fine = std::min((rows + kPartRows - 1) / kPartRows, most);
  return std::max(even, static_cast<int>(fine));
}

// Whether the last block of a tile sums its parts itself: that saves a launch and a pass over them,
// while there are few enough for one block to read.
constexpr bool sums_in_place(int heads, int tile_heads, int splits) {
  constexpr int kMaxRows = 128;  // of 2 KiB: 2 us for one block
  return splits > 1 && std::min(heads, tile_heads) * splits <= kMaxRows;
}

}  // namespace topknot::attention::portable
