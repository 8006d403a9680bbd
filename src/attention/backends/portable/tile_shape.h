// How a block of threads cuts the work of the tiled kernel, and the shared memory that takes.
// Plain numbers: the kernels, the rules of the backend and the tests read the same ones.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "attention/backends/portable/mla_kernels.h"

#if defined(__CUDACC__)
#define TOPKNOT_HOST_DEVICE __host__ __device__
#else
#define TOPKNOT_HOST_DEVICE
#endif

namespace topknot::attention::portable {

inline constexpr int kRank = 512;    // kv_lora_rank that the value tile is unrolled for
inline constexpr int kMaxRope = 64;  // a narrower rope part is padded with zeros
inline constexpr int kThreads = 256;
inline constexpr int kWarps = 8;
// 16 rows would double the barriers per row (15-20 % slower); 64 do not fit into 99 KiB.
inline constexpr int kTileRows = 32;
inline constexpr int kThreadsPerRow = kThreads / kTileRows;
// 16 bytes over 9 x 128: the 8 rows of an 8x8 matrix fall into different banks.
inline constexpr int kTileRowBytes = 2 * (kRank + kMaxRope) + 16;
inline constexpr int kTileBytes = kTileRows * kTileRowBytes;
// Rows of 8 bits are staged as they are and widened to bf16. 704 is 64 beyond a multiple of 128, so
// that two rows do not share banks.
inline constexpr int kRawRowBytes = 704;
inline constexpr int kRawTileBytes = kTileRows * kRawRowBytes;
// Rows of fp8_ds that are not widened: 8 words beyond a multiple of 32, so that four rows of 8
// words do not share banks.
inline constexpr int kCodeRowBytes = 672;
inline constexpr int kRingTiles = 4;       // tiles in flight and in use, of pages and masks
inline constexpr int kSmemLimit = 101376;  // per block on sm_86, sm_89 and sm_120

// 8 warps = head groups of 16 heads x what is left to share the 576 columns of a score and the 512
// columns of the output.
template <int kHeadGroups_>
struct TileShape {
  static constexpr int kHeadGroups = kHeadGroups_;
  static constexpr int kHeads = 16 * kHeadGroups;
  static constexpr int kWarpsPerGroup = kWarps / kHeadGroups;
  static constexpr int kDepthGroups = kHeadGroups == 1 ? 4 : 2;     // share the columns of a score
  static constexpr int kRowGroups = kWarpsPerGroup / kDepthGroups;  // share the rows of a tile
  static constexpr int kDepthSteps = (kRank + kMaxRope) / 16 / kDepthGroups;
  static constexpr int kScoreTiles = kTileRows / 8 / kRowGroups;  // of 8 rows
  static constexpr int kValueTiles = kRank / 8 / kWarpsPerGroup;  // of 8 columns
  // With 64 heads only two warps share a head: each keeps a softmax of its own. With fewer, one
  // warp of eight computes a head's softmax for all.
  static constexpr bool kSharedSoftmax = kHeadGroups < 4;
};

// Strides that keep the accesses of a warp in different banks: 8 words beyond a row, so four heads
// of 8 words do not meet, and 80 bytes for ldmatrix.
inline constexpr int kScoreStride = kTileRows + 8;   // f32
inline constexpr int kWeightStride = kTileRows + 8;  // bf16
inline constexpr int kScaleGroups = kRank / 128;     // of an fp8_ds row

// Shared memory of a block, in order: tiles, scores, weights, factors of heads, masks, pages. With
// 16 heads rows of fp8_ds stay as they are, and their scales are applied to scores and weights,
// which are fewer: to the weights of each scale group.
template <RowFormat kFormat, int kHeadGroups>
struct TileSmem {
  using Shape = TileShape<kHeadGroups>;
  static constexpr bool kCodes = kFormat == RowFormat::kFp8Ds && kHeadGroups == 1;
  static constexpr int kWeightSets = kCodes ? kScaleGroups : 1;
  static constexpr int kScoresOffset = kCodes ? 3 * kTileRows * kCodeRowBytes
                                       : kFormat == RowFormat::kBf16
                                           ? 2 * kTileBytes
                                           : kTileBytes + 2 * kRawTileBytes;
  static constexpr int kScoresBytes =
      Shape::kSharedSoftmax ? Shape::kDepthGroups * Shape::kHeads * kScoreStride * 4 : 16384;
  static constexpr int kWeightsOffset = kScoresOffset + kScoresBytes;
  static constexpr int kWeightsBytes =
      Shape::kSharedSoftmax ? kWeightSets * Shape::kHeads * kWeightStride * 2 : 0;
  static constexpr int kFactorsOffset = kWeightsOffset + kWeightsBytes;
  static constexpr int kFactorsBytes = Shape::kSharedSoftmax ? Shape::kHeads * 4 : 0;
  static constexpr int kMaskOffset = kFactorsOffset + kFactorsBytes;
  static constexpr int kPagesOffset = kMaskOffset + kRingTiles * kTileRows * 4;
  static constexpr int kBytes = kPagesOffset + kRingTiles * kTileRows * 4;
  static_assert(kBytes <= kSmemLimit);
};

// 16, 32, 64 heads to 0, 1, 2.
constexpr int tile_index(int tile_heads) { return tile_heads / 32; }

// Of one block, by numbers known at run time.
constexpr int tile_smem_bytes(const TiledKernel& kernel) {
  constexpr int kBytes[kRowFormats][3] = {
      {TileSmem<RowFormat::kBf16, 1>::kBytes, TileSmem<RowFormat::kBf16, 2>::kBytes,
       TileSmem<RowFormat::kBf16, 4>::kBytes},
      {TileSmem<RowFormat::kFp8Ds, 1>::kBytes, TileSmem<RowFormat::kFp8Ds, 2>::kBytes,
       TileSmem<RowFormat::kFp8Ds, 4>::kBytes},
      {TileSmem<RowFormat::kQ8_0, 1>::kBytes, TileSmem<RowFormat::kQ8_0, 2>::kBytes,
       TileSmem<RowFormat::kQ8_0, 4>::kBytes},
  };
  return kBytes[static_cast<int>(kernel.format)][tile_index(kernel.tile_heads)];
}

// The generic kernel: softmax and mask at fixed places, then 16 queries and a tile of rows as wide
// as the model's.
struct GenericSmem {
  using Shape = TileShape<1>;
  static constexpr bool kCodes = false;
  static constexpr int kWeightSets = 1;
  static constexpr int kScoresOffset = 0;
  static constexpr int kWeightsOffset =
      kScoresOffset + Shape::kDepthGroups * Shape::kHeads * kScoreStride * 4;
  static constexpr int kFactorsOffset = kWeightsOffset + Shape::kHeads * kWeightStride * 2;
  static constexpr int kMaskOffset = kFactorsOffset + Shape::kHeads * 4;
  static constexpr int kQueriesOffset = kMaskOffset + kTileRows * 4;
};
inline constexpr int kGenericMaxWidth = 912;  // kv_lora_rank + qk_rope_head_dim
inline constexpr int kGenericValueColumns = 512;

TOPKNOT_HOST_DEVICE constexpr int generic_padded_width(int width) { return (width + 15) / 16 * 16; }
// 16 beyond a multiple of 32 bytes: the rows of a matrix fall into different banks.
TOPKNOT_HOST_DEVICE constexpr int generic_row_bytes(int width) {
  return 2 * generic_padded_width(width) + 16;
}
TOPKNOT_HOST_DEVICE constexpr int generic_value_blocks(int rank) {
  return (rank + kGenericValueColumns - 1) / kGenericValueColumns;
}
constexpr int generic_smem_bytes(int width) {
  return GenericSmem::kQueriesOffset + (16 + kTileRows) * generic_row_bytes(width);
}
static_assert(generic_smem_bytes(kGenericMaxWidth) <= kSmemLimit);

constexpr int64_t tile_blocks(int tile_heads, const MlaKernelArgs& args) {
  return args.tokens * args.splits * ((args.heads + tile_heads - 1) / tile_heads);
}

// What any kernel of this folder may ask for.
inline constexpr int kLargestSmemBytes = [] {
  int largest = generic_smem_bytes(kGenericMaxWidth);
  for (int format = 0; format < kRowFormats; ++format) {
    for (const int heads : {16, 32, 64}) {
      const int bytes = tile_smem_bytes({static_cast<RowFormat>(format), heads});
      if (bytes > largest) largest = bytes;
    }
  }
  return largest;
}();
static_assert(kLargestSmemBytes <= kSmemLimit);

}  // namespace topknot::attention::portable
