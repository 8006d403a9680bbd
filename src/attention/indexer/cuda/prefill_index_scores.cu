// Prefill: 256 keys of one request stay in registers, 32 for each warp, while the queries of a
// chunk pass through shared memory. Bound by mma.sync: a fragment of a query is read once from
// shared memory for two tiles of keys, which is what it takes to feed the tensor cores.
//
// A query that sees no key of the block, or is not scored at all, is not loaded. Where the request
// changes inside a chunk the keys are loaded anew, so any batch is computed correctly.
#include "attention/indexer/cuda/score_tile.cuh"

namespace topknot::attention {
namespace {

constexpr int kThreads = 256;
constexpr int kTileKeys = 16;  // rows of an A operand
constexpr int kTiles = 4;
constexpr int kBlocks = 1;
constexpr int kWarpKeys = kTiles * kTileKeys;
constexpr int kBlockKeys = kThreads / 32 * kWarpKeys;
// Queries that a block reads with the same keys: 64 KiB of keys are loaded for 1 MiB of queries.
constexpr int kChunk = 128;

using KeyTile = uint32_t[kKeySteps][4];  // 16 keys as A operands

template <int kHeadTiles>
struct Shared {
  // 64 heads take 16 KiB a query: three stages let two blocks share the 100 KiB of sm_86 and
  // sm_120.
  static constexpr int kStages = kHeadTiles == 4 ? 4 : 3;
  uint4 query[kStages][kHeadTiles][kKeySteps / 2][32];  // B operands of each lane, two k-steps
  float weights[kStages][kHeadTiles * 8];
  // The queries that see keys of this block, in order.
  int needed[kChunk];  // which of the chunk
  int visible[kChunk];
  int requests[kChunk];
  int warp_needed[kChunk / 32];
};

// Lists the queries of the chunk from `first` that see key `begin`; returns how many.
template <class Shared>
__device__ int list_queries(const IndexScoresArgs& args, int64_t first, int64_t begin,
                            Shared& shared) {
  const int thread = threadIdx.x;
  bool needed = false;
  int visible = 0;
  int request = 0;
  unsigned votes = 0;
  if (thread < kChunk) {
    if (first + thread < args.tokens) {
      visible = args.visible[first + thread];
      request = args.requests[first + thread];
      needed = visible > begin && visible > args.unscored_up_to;
    }
    votes = __ballot_sync(0xFFFF'FFFFu, needed);
    if (thread % 32 == 0) shared.warp_needed[thread / 32] = __popc(votes);
  }
  __syncthreads();
  int before = 0, count = 0;
  for (int warp = 0; warp < kChunk / 32; ++warp) {
    if (warp < thread / 32) before += shared.warp_needed[warp];
    count += shared.warp_needed[warp];
  }
  if (needed) {
    const int at = before + __popc(votes & ((1u << thread % 32) - 1));
    shared.needed[at] = thread;
    shared.visible[at] = visible;
    shared.requests[at] = request;
  }
  __syncthreads();
  return count;
}

template <IndexKeyFormat kFormat, int kHeadTiles>
__device__ void request_query(const IndexScoresArgs& args, int64_t token, int stage,
                              Shared<kHeadTiles>& shared) {
  const uint16_t* q = args.q + token * (kHeadTiles * 8 * kTunedHeadDim);
  const float* weights = args.weights + token * (kHeadTiles * 8);
  uint4* query = &shared.query[stage][0][0][0];
#pragma unroll
  for (int i = threadIdx.x; i < kHeadTiles * kKeySteps / 2 * 32; i += kThreads) {
    const int head = i / (kKeySteps / 2 * 32) * 8 + i % 32 / 4;
    const int dims = dims_of<kFormat>(i / 32 % (kKeySteps / 2) * 2, i % 4);
    copy_async_16(query + i, q + head * kTunedHeadDim + dims);
  }
  if (threadIdx.x < kHeadTiles * 2) {
    copy_async_16(&shared.weights[stage][threadIdx.x * 4], weights + threadIdx.x * 4);
  }
}

// Rows of 16 consecutive keys, four or two bytes at a time: registers of an operand must be
// adjacent, and those of wider loads are not those of one operand.
template <IndexKeyFormat kFormat>
__device__ void load_tile(const std::byte* rows, int lane, KeyTile& keys) {
#pragma unroll
  for (int s = 0; s < kKeySteps; ++s) {
    const int dim = dims_of<kFormat>(s, lane % 4);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = lane / 4 + half * 8;
      if constexpr (kFormat == IndexKeyFormat::kBf16) {
        const auto* pairs =
            reinterpret_cast<const uint32_t*>(rows) + (row * kTunedHeadDim + dim) / 2;
        keys[s][half] = pairs[0];
        keys[s][half + 2] = pairs[1];
      } else {
        const auto word = *reinterpret_cast<const uint32_t*>(rows + row * kFp8IndexRowBytes + dim);
        keys[s][half] = e4m3_pair_as_half<0>(word);
        keys[s][half + 2] = e4m3_pair_as_half<2>(word);
      }
    }
  }
}

// Of two adjacent tiles the key whose score the lane ends up with.
__device__ int stored_key(int lane) { return lane / 4 + lane % 4 * 8; }

// The warp's keys from position `begin` of a request, and the scales of those whose scores this
// lane ends up with.
template <IndexKeyFormat kFormat>
__device__ void load_keys(const IndexScoresArgs& args, int request, int64_t begin, int lane,
                          KeyTile (&keys)[kTiles], float (&scales)[kTiles / 2]) {
  constexpr int kRowBytes =
      kFormat == IndexKeyFormat::kBf16 ? kTunedHeadDim * 2 : kFp8IndexRowBytes;
  const int page = args.block_table[request * args.max_pages + begin / kIndexPageTokens];
  const int64_t slot = int64_t{page} * kIndexPageTokens + begin % kIndexPageTokens;
  const std::byte* rows = args.key_rows + slot * kRowBytes;
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
    load_tile<kFormat>(rows + m * kTileKeys * kRowBytes, lane, keys[m]);
  }
  if constexpr (kFormat == IndexKeyFormat::kFp8) {
#pragma unroll
    for (int i = 0; i < kTiles / 2; ++i) {
      scales[i] = fp8_key_scale(rows, i * 2 * kTileKeys + stored_key(lane));
    }
  }
}

// Sums [tile][row g or g + 8] of each lane's heads to the score of stored_key().
__device__ float sum_over_heads(const float (&first)[2], const float (&second)[2], int lane) {
  return add_across(add_across(first[0], first[1], lane, 1),
                    add_across(second[0], second[1], lane, 1), lane, 2);
}

// Adds head tile n to the sums of rows g and g + 8 of each tile: heads 2t, 2t + 1 of its 8.
template <IndexKeyFormat kFormat, int kHeadTiles>
__device__ void score_heads(const KeyTile (&keys)[kTiles], const Shared<kHeadTiles>& shared,
                            int stage, int n, int lane, float (&sums)[kTiles][2]) {
  float dots[kTiles][4];
#pragma unroll
  for (int s = 0; s < kKeySteps; s += 2) {
    const uint4 quad = shared.query[stage][n][s / 2][lane];
    const uint32_t first[2] = {quad.x, quad.y};
    const uint32_t second[2] = {quad.z, quad.w};
#pragma unroll
    for (int m = 0; m < kTiles; ++m) multiply_tile<kFormat>(dots[m], keys[m][s], first, s == 0);
#pragma unroll
    for (int m = 0; m < kTiles; ++m) multiply_tile<kFormat>(dots[m], keys[m][s + 1], second);
  }
  const float2 weights =
      *reinterpret_cast<const float2*>(&shared.weights[stage][n * 8 + lane % 4 * 2]);
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      sums[m][i] = fmaf(weights.x, relu(dots[m][2 * i]), sums[m][i]);
      sums[m][i] = fmaf(weights.y, relu(dots[m][2 * i + 1]), sums[m][i]);
    }
  }
}

// This lane's part of the scores of rows g and g + 8 of each tile: heads 2t, 2t + 1 of each 8.
template <IndexKeyFormat kFormat, int kHeadTiles>
__device__ void score_query(const KeyTile (&keys)[kTiles], const Shared<kHeadTiles>& shared,
                            int stage, int lane, float (&sums)[kTiles][2]) {
  float of_odd[kTiles][2] = {};  // head tiles 1, 3, ..; sums has those of the even ones
  // All of 64 heads in one piece would take more registers than there are.
  constexpr int kUnrolledPairs = kHeadTiles == 4 ? 2 : 1;
#pragma unroll kUnrolledPairs
  for (int pair = 0; pair < kHeadTiles / 2; ++pair) {
    score_heads<kFormat>(keys, shared, stage, 2 * pair, lane, sums);
    score_heads<kFormat>(keys, shared, stage, 2 * pair + 1, lane, of_odd);
  }
#pragma unroll
  for (int m = 0; m < kTiles; ++m) {
    sums[m][0] += of_odd[m][0];
    sums[m][1] += of_odd[m][1];
  }
}

// One block on an SM: 255 registers, half of them keys.
template <IndexKeyFormat kFormat, int kHeadTiles>
__global__ void __launch_bounds__(kThreads, kBlocks)
    prefill_index_scores(IndexScoresArgs args, int64_t key_blocks) {
  using Memory = Shared<kHeadTiles>;
  constexpr int kStages = Memory::kStages;
  extern __shared__ __align__(16) std::byte memory[];
  Memory& shared = *reinterpret_cast<Memory*>(memory);
  const int lane = threadIdx.x % 32;
  const int64_t first = blockIdx.x / key_blocks * kChunk;
  const int64_t block_begin = blockIdx.x % key_blocks * kBlockKeys;
  const int64_t begin = block_begin + threadIdx.x / 32 * kWarpKeys;
  const int count = list_queries(args, first, block_begin, shared);
  const auto request = [&](int i) {
    if (i < count) {
      request_query<kFormat, kHeadTiles>(args, first + shared.needed[i], i % kStages, shared);
    }
    commit_copies();
  };
  for (int i = 0; i < kStages - 1; ++i) request(i);

  KeyTile keys[kTiles];
  float scales[kTiles / 2];
  int loaded = -1;  // the request whose keys are in registers
  for (int i = 0; i < count; ++i) {
    wait_copies<kStages - 2>();
    __syncthreads();  // query i is whole, and query i - 1 is read by all warps
    request(i + kStages - 1);
    const int64_t visible = shared.visible[i];
    if (visible <= begin) continue;
    if (const int wanted = shared.requests[i]; wanted != loaded) {
      load_keys<kFormat>(args, wanted, begin, lane, keys, scales);
      loaded = wanted;
    }
    float sums[kTiles][2] = {};
    score_query<kFormat>(keys, shared, i % kStages, lane, sums);
    float* row = args.scores + (first + shared.needed[i]) * args.scores_stride;
#pragma unroll
    for (int m = 0; m < kTiles; m += 2) {
      float score = sum_over_heads(sums[m], sums[m + 1], lane);
      if constexpr (kFormat == IndexKeyFormat::kFp8) score *= scales[m / 2];
      const int64_t key = begin + m * kTileKeys + stored_key(lane);
      if (key < visible) row[key] = score;
    }
  }
}

template <IndexKeyFormat kFormat, int kHeadTiles>
cudaError_t launch(const IndexScoresArgs& args, cudaStream_t stream) {
  constexpr int kBytes = sizeof(Shared<kHeadTiles>);
  static_assert(kBytes <= kIndexScoresSharedBytes);
  const auto kernel = prefill_index_scores<kFormat, kHeadTiles>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess) return error;
  const int64_t key_blocks = (args.max_visible + kBlockKeys - 1) / kBlockKeys;
  const int64_t blocks = key_blocks * ((args.tokens + kChunk - 1) / kChunk);
  if (blocks == 0) return cudaSuccess;
  if (blocks > INT32_MAX) return cudaErrorInvalidConfiguration;
  kernel<<<static_cast<unsigned>(blocks), kThreads, kBytes, stream>>>(args, key_blocks);
  return cudaGetLastError();
}

}  // namespace

cudaError_t launch_prefill_index_scores(const IndexScoresArgs& args, cudaStream_t stream) {
  if (!index_scores_are_tuned(args)) return cudaErrorInvalidValue;
  const bool bf16 = args.format == IndexKeyFormat::kBf16;
  if (args.heads == 32) {
    return bf16 ? launch<IndexKeyFormat::kBf16, 4>(args, stream)
                : launch<IndexKeyFormat::kFp8, 4>(args, stream);
  }
  return bf16 ? launch<IndexKeyFormat::kBf16, 8>(args, stream)
              : launch<IndexKeyFormat::kFp8, 8>(args, stream);
}

}  // namespace topknot::attention
