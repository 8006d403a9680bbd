// What the indexer's GPU kernels depend on, as numbers: for the kernels and for the rules that say
// where they run. Needs nothing of CUDA.
#pragma once

namespace topknot::attention {

inline constexpr int kIndexPageTokens = 64;
inline constexpr int kFp8IndexHeadDim = 128;
inline constexpr int kFp8IndexRowBytes = kFp8IndexHeadDim + 4;
// What a block of the score kernels, and of the selection kernels, takes at most.
inline constexpr int kIndexScoresSharedBytes = 64 << 10;
inline constexpr int kTopKSharedBytes = 80 << 10;

}  // namespace topknot::attention
