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

// A part shorter than two tiles costs more in sums of parts than it saves (H200, one token).
inline constexpr int64_t kLeastPartTiles = 2;
inline constexpr int64_t kMostSplits = 128;  // that the sum of one output reads

// Parts that a list of up to `rows` rows is cut into, so that the blocks fill the multiprocessors
// once: a second, partial wave costs 10 to 20 %, idle multiprocessors as much as their number.
constexpr int splits_for(int64_t tokens, int heads, int tile_heads, int64_t rows, int slots) {
  const int64_t tiles = std::max<int64_t>(1, (rows + kTileRows - 1) / kTileRows);
  const int64_t blocks = std::max<int64_t>(1, tokens * ((heads + tile_heads - 1) / tile_heads));
  const int64_t most = std::clamp<int64_t>(tiles / kLeastPartTiles, 1, kMostSplits);
  const int64_t splits = std::clamp<int64_t>(slots / blocks, 1, most);
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

// Whether two blocks add their parts themselves: half of the partial results are not written at
// all, and a launch is saved. With more parts one block would read for longer than a launch takes.
constexpr bool adds_in_pairs(int splits) { return splits == 2; }

// The largest GPU that the scratch is computed for without seeing it: 188 multiprocessors of an RTX
// PRO 6000. A larger one is used as if it had no more.
inline constexpr int kMostMultiprocessors = 192;
constexpr int most_blocks_per_sm(int tile_heads) { return tile_heads == 16 ? 2 : 1; }

// Rows of partial results of `waves` times as many blocks as run at once, each with a tile of
// heads, or with all heads where they are fewer.
constexpr int64_t scratch_rows(int64_t heads, int tile_heads, int64_t slots, int waves) {
  return waves * slots * std::min<int64_t>(heads, tile_heads);
}

}  // namespace topknot::attention::portable
