// How the two kernels of the split selection divide a row among blocks.
#pragma once

#include <cstdint>

#include "attention/indexer/cuda/top_k.h"

namespace topknot::attention {

inline constexpr int kBinShift = 20;  // of a key to its bin
static_assert(kSplitTopKBins == 1 << (32 - kBinShift));

struct RowPart {
  int64_t row;
  int part;
  uint32_t visible;
  uint32_t begin;  // a multiple of 4
  uint32_t end;
};

// The part of the block: parts of a row are equally long up to rounding.
__device__ inline RowPart part_of_block(const SplitTopKArgs& args) {
  RowPart p;
  p.row = blockIdx.x / args.parts;
  p.part = static_cast<int>(blockIdx.x % args.parts);
  p.visible = static_cast<uint32_t>(args.top_k.visible[p.row]);
  const uint32_t length = (p.visible + args.parts * 4 - 1) / (args.parts * 4) * 4;
  p.begin = min(p.part * length, p.visible);
  p.end = min(p.begin + length, p.visible);
  return p;
}

}  // namespace topknot::attention
