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
constexpr int kWarpKeys = 2 * kTileKeys;
constexpr int kBlockKeys = kThreads / 32 * kWarpKeys;
// Queries that a block reads with the same keys: 64 KiB of keys are loaded for 1 MiB of queries.
constexpr int kChunk = 128;

template <int kHeadTiles>
struct Shared {
  // 64 heads take 16 KiB a query: three stages let two blocks share the 100 KiB of sm_86 and
  // sm_120.
  static constexpr int kStages = kHeadTiles == 4 ? 4 : 3;
  uint4 query[kStages][kHeadTiles * kHeadTileChunks];
  float weights[kStages][kHeadTiles * 8];
  int needed[kChunk];  // the queries that see keys of this block, in order
  int warp_needed[kChunk / 32];
};

// Lists the queries of the chunk from `first` that see key `begin`; returns how many.
template <class Shared>
__device__ int list_queries(const IndexScoresArgs& args, int64_t first, int64_t begin,
                            Shared& shared) {
  const int thread = threadIdx.x;
  bool needed = false;
  unsigned votes = 0;
  if (thread < kChunk) {
    const int64_t token = first + thread;
    if (token < args.tokens) {
      const int64_t visible = args.visible[token];
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
  if (needed) shared.needed[before + __popc(votes & ((1u << thread % 32) - 1))] = thread;
  __syncthreads();
  return count;
}

template <IndexKeyFormat kFormat, int kHeadTiles>
__device__ void request_query(const IndexScoresArgs& args, int64_t token, int stage,
                              Shared<kHeadTiles>& shared) {
  const uint16_t* q = args.q + token * (kHeadTiles * 8 * kTunedHeadDim);
  const float* weights = args.weights + token * (kHeadTiles * 8);
#pragma unroll
  for (int i = threadIdx.x; i < kHeadTiles * kHeadTileChunks; i += kThreads) {
    copy_async_16(&shared.query[stage][i], q + query_chunk_source<kFormat>(i));
  }
  if (threadIdx.x < kHeadTiles * 2) {
    copy_async_16(&shared.weights[stage][threadIdx.x * 4], weights + threadIdx.x * 4);
  }
}

// The warp's 32 keys from position `begin` of a request, and the scale of the one whose score this
// lane ends up with.
template <IndexKeyFormat kFormat>
__device__ float load_keys(const IndexScoresArgs& args, int request, int64_t begin, int lane,
                           KeyFragment (&keys)[2]) {
  const int page = args.block_table[request * args.max_pages + begin / kIndexPageTokens];
  const int64_t slot = int64_t{page} * kIndexPageTokens + begin % kIndexPageTokens;
  if constexpr (kFormat == IndexKeyFormat::kBf16) {
    constexpr int kTileBytes = kTileKeys * kTunedHeadDim * 2;
    const std::byte* tile = args.key_rows + slot * (kTunedHeadDim * 2);
    load_bf16_keys(tile, lane, keys[0]);
    load_bf16_keys(tile + kTileBytes, lane, keys[1]);
    return 1.0f;
  } else {
    const std::byte* tile = args.key_rows + slot * kFp8IndexRowBytes;
    load_fp8_keys(tile, lane, keys[0]);
    load_fp8_keys(tile + kTileKeys * kFp8IndexRowBytes, lane, keys[1]);
    return fp8_key_scale(tile, lane / 4 + lane % 4 * 8);
  }
}

// Two blocks on an SM: 128 registers, half of them keys.
template <IndexKeyFormat kFormat, int kHeadTiles>
__global__ void __launch_bounds__(kThreads, 2)
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

  KeyFragment keys[2];
  float scale = 1.0f;
  int loaded = -1;  // the request whose keys are in registers
  for (int i = 0; i < count; ++i) {
    wait_copies<kStages - 2>();
    __syncthreads();  // query i is whole, and query i - 1 is read by all warps
    request(i + kStages - 1);
    const int64_t token = first + shared.needed[i];
    const int64_t visible = args.visible[token];
    if (visible <= begin) continue;
    if (const int wanted = args.requests[token]; wanted != loaded) {
      scale = load_keys<kFormat>(args, wanted, begin, lane, keys);
      loaded = wanted;
    }
    float sums[4] = {};
    score_keys<kFormat, kHeadTiles, 2, 2>(keys, shared.query[i % kStages],
                                          shared.weights[i % kStages], lane, sums);
    float score = sum_over_heads(sums, lane);
    if constexpr (kFormat == IndexKeyFormat::kFp8) score *= scale;
    const int64_t key = begin + lane / 4 + lane % 4 * 8;
    if (key < visible) args.scores[token * args.scores_stride + key] = score;
  }
}

template <IndexKeyFormat kFormat, int kHeadTiles>
cudaError_t launch(const IndexScoresArgs& args, cudaStream_t stream) {
  constexpr int kBytes = sizeof(Shared<kHeadTiles>);
  static_assert(kBytes <= kMaxIndexSharedBytes);
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
