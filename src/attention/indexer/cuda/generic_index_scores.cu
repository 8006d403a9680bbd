// Any number of heads and any head_dim that is a multiple of 16. Fragments come straight from
// memory, four bytes at a time: correct everywhere, tuned nowhere.
#include "attention/indexer/cuda/score_tile.cuh"

namespace topknot::attention {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kTileKeys = 16;     // rows of an A operand
constexpr int kMaxSegments = 64;  // blocks that share a row

// A operand of one k-step in the natural order of dims: rows g and g + 8, dims 2t and 2t + 8 on.
template <IndexKeyFormat kFormat>
__device__ void load_key_step(const std::byte* tile, int row_bytes, int step, int lane,
                              uint32_t (&a)[4]) {
  const std::byte* row = tile + (lane / 4) * row_bytes;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const std::byte* from = row + i % 2 * 8 * row_bytes;
    const int dim = step * 16 + lane % 4 * 2 + i / 2 * 8;
    if constexpr (kFormat == IndexKeyFormat::kBf16) {
      a[i] = *reinterpret_cast<const uint32_t*>(from + dim * 2);
    } else {
      a[i] = e4m3_pair_as_half<0>(*reinterpret_cast<const uint16_t*>(from + dim));
    }
  }
}

// Scores of rows g and g + 8 of a tile, this lane's heads; heads behind the last count nothing.
template <IndexKeyFormat kFormat>
__device__ void score_tile(const IndexScoresArgs& args, int64_t token, const std::byte* tile,
                           int row_bytes, int lane, float (&sums)[2]) {
  const int steps = args.head_dim / 16;
  for (int first = 0; first < args.heads; first += 8) {
    float dots[4] = {};
    const int head = first + lane / 4;
    const uint16_t* q = args.q + (token * args.heads + head) * args.head_dim + lane % 4 * 2;
    for (int step = 0; step < steps; ++step) {
      uint32_t a[4];
      load_key_step<kFormat>(tile, row_bytes, step, lane, a);
      uint32_t b[2] = {};
      if (head < args.heads) {
        b[0] = *reinterpret_cast<const uint32_t*>(q + step * 16);
        b[1] = *reinterpret_cast<const uint32_t*>(q + step * 16 + 8);
      }
      multiply_tile<kFormat>(dots, a, b);
    }
    for (int i = 0; i < 2; ++i) {
      const int column = first + lane % 4 * 2 + i;
      if (column >= args.heads) continue;  // a NaN key times no head is nothing
      const float weight = args.weights[token * args.heads + column];
      sums[0] = fmaf(weight, relu(dots[i]), sums[0]);
      sums[1] = fmaf(weight, relu(dots[2 + i]), sums[1]);
    }
  }
}

template <IndexKeyFormat kFormat>
__global__ void __launch_bounds__(kThreads)
    generic_index_scores(IndexScoresArgs args, int segments) {
  const int lane = threadIdx.x % 32;
  const int64_t token = blockIdx.x / segments;
  const int64_t visible = args.visible[token];
  if (visible <= args.unscored_up_to) return;
  const int row_bytes = kFormat == IndexKeyFormat::kBf16 ? args.head_dim * 2 : kFp8IndexRowBytes;
  const int32_t* pages = args.block_table + args.requests[token] * args.max_pages;
  float* row = args.scores + token * args.scores_stride;
  const int64_t stride = int64_t{segments} * kWarps * kTileKeys;
  int64_t begin = (int64_t{blockIdx.x % segments} * kWarps + threadIdx.x / 32) * kTileKeys;
  for (; begin < visible; begin += stride) {
    const int64_t slot =
        int64_t{pages[begin / kIndexPageTokens]} * kIndexPageTokens + begin % kIndexPageTokens;
    const std::byte* tile = args.key_rows + slot * row_bytes;
    float sums[2] = {};
    score_tile<kFormat>(args, token, tile, row_bytes, lane, sums);
    const float pair = add_across(sums[0], sums[1], lane, 1);
    float score = pair + __shfl_xor_sync(0xFFFF'FFFFu, pair, 2);
    const int at = lane / 4 + lane % 2 * 8;
    if constexpr (kFormat == IndexKeyFormat::kFp8) score *= fp8_key_scale(tile, at);
    if (lane % 4 < 2 && begin + at < visible) row[begin + at] = score;
  }
}

}  // namespace

cudaError_t launch_generic_index_scores(const IndexScoresArgs& args, cudaStream_t stream) {
  const bool bf16 = args.format == IndexKeyFormat::kBf16;
  if (args.heads < 1 || args.head_dim % 16 != 0 || (!bf16 && args.head_dim != kFp8IndexHeadDim)) {
    return cudaErrorInvalidValue;
  }
  if (args.tokens == 0) return cudaSuccess;
  constexpr int64_t kBlockKeys = kWarps * kTileKeys;
  int64_t segments = (args.max_visible + kBlockKeys - 1) / kBlockKeys;
  segments = segments < 1 ? 1 : segments > kMaxSegments ? kMaxSegments : segments;
  if (args.tokens * segments > INT32_MAX) return cudaErrorInvalidConfiguration;
  const auto blocks = static_cast<unsigned>(args.tokens * segments);
  if (bf16) {
    generic_index_scores<IndexKeyFormat::kBf16>
        <<<blocks, kThreads, 0, stream>>>(args, static_cast<int>(segments));
  } else {
    generic_index_scores<IndexKeyFormat::kFp8>
        <<<blocks, kThreads, 0, stream>>>(args, static_cast<int>(segments));
  }
  return cudaGetLastError();
}

}  // namespace topknot::attention
