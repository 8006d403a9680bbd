// Decode: every warp streams tiles of 16 keys of one query at a time. Bound by memory bandwidth.
//
// bf16 keys go from global memory to registers in fragment order, one tile ahead; 16 warps on an SM
// keep 64 KiB in flight. fp8 rows of 132 bytes are not 16-byte aligned but 16 of them are, so each
// warp copies whole tiles into a ring of its own.
// The grid is one wave. Blocks share all tiles of all queries evenly, whatever their lengths: each
// computes the same prefix sums of tiles and takes its part of the total.
#include "attention/indexer/cuda/score_tile.cuh"

namespace topknot::attention {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kMaxTokens = kThreads;  // of one launch: each thread counts the tiles of one token
constexpr int kStages = 3;            // of the ring of fp8 tiles: two under way, one in use
constexpr int kFp8TileBytes = kTileKeys * kFp8IndexRowBytes;
constexpr int kFp8TileChunks = kFp8TileBytes / 16;

template <IndexKeyFormat kFormat, int kHeadTiles>
struct Shared {
  uint4 query[kHeadTiles * kHeadTileChunks];
  float weights[kHeadTiles * 8];
  long long first_tile[kMaxTokens + 1];  // of each token, in the order of all tiles
  long long warp_tiles[kWarps];
  // With bf16 keys unused.
  alignas(16) std::byte ring[kFormat == IndexKeyFormat::kFp8 ? kWarps : 1]
                            [kFormat == IndexKeyFormat::kFp8 ? kStages : 1][kFp8TileBytes];
};

// Fills first_tile with the exclusive prefix sums over tokens and the total behind them.
template <class Shared>
__device__ void count_tiles(const IndexScoresArgs& args, Shared& shared) {
  const int thread = threadIdx.x;
  const int lane = thread % 32;
  long long tiles = 0;
  if (thread < args.tokens) {
    const int visible = args.visible[thread];
    if (visible > args.unscored_up_to) tiles = (visible + kTileKeys - 1) / kTileKeys;
  }
  long long sum = tiles;
  for (int step = 1; step < 32; step *= 2) {
    const long long other = __shfl_up_sync(0xFFFF'FFFFu, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == 31) shared.warp_tiles[thread / 32] = sum;
  __syncthreads();
  for (int warp = 0; warp < thread / 32; ++warp) sum += shared.warp_tiles[warp];
  shared.first_tile[thread + 1] = sum;
  if (thread == 0) shared.first_tile[0] = 0;
  __syncthreads();
}

// The token whose tiles hold tile `at` of all.
template <class Shared>
__device__ int token_of_tile(const Shared& shared, long long at) {
  int low = 0, high = kMaxTokens;  // first_tile[low] <= at < first_tile[high]
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (shared.first_tile[middle] <= at ? low : high) = middle;
  }
  return low;
}

template <IndexKeyFormat kFormat, class Shared>
__device__ void load_query(const IndexScoresArgs& args, int64_t token, Shared& shared) {
  const uint16_t* q = args.q + token * args.heads * kTunedHeadDim;
  const int chunks = args.heads / 8 * kHeadTileChunks;
  for (int i = threadIdx.x; i < chunks; i += kThreads) {
    shared.query[i] = *reinterpret_cast<const uint4*>(q + query_chunk_source<kFormat>(i));
  }
  if (threadIdx.x < args.heads) {
    shared.weights[threadIdx.x] = args.weights[token * args.heads + threadIdx.x];
  }
}

// One query's keys as a sequence of tiles.
struct TileSource {
  const std::byte* rows;
  const int32_t* pages;
  int row_bytes;

  __device__ const std::byte* operator()(int64_t tile) const {
    constexpr int kPageTiles = kIndexPageTokens / kTileKeys;
    const int64_t slot =
        int64_t{pages[tile / kPageTiles]} * kIndexPageTokens + tile % kPageTiles * kTileKeys;
    return rows + slot * row_bytes;
  }
};

// A warp's tiles of one query: first, first + kWarps, .. below last.
struct TileRun {
  int64_t first;
  int64_t last;
};

// Calls ready() once, when the first loads are under way, before anything is computed.
template <int kHeadTiles, class Shared, class Ready, class Store>
__device__ void stream_bf16(const TileSource& source, TileRun run, const Shared& shared, int lane,
                            Ready ready, Store store) {
  KeyFragment next[1];
  if (run.first < run.last) load_bf16_keys(source(run.first), lane, next[0]);
  ready();
  for (int64_t tile = run.first; tile < run.last; tile += kWarps) {
    KeyFragment keys[1];
#pragma unroll
    for (int k = 0; k < kKeySteps; ++k) {
#pragma unroll
      for (int r = 0; r < 4; ++r) keys[0][k][r] = next[0][k][r];
    }
    if (tile + kWarps < run.last) load_bf16_keys(source(tile + kWarps), lane, next[0]);
    float sums[2] = {};
    score_keys<IndexKeyFormat::kBf16, kHeadTiles, 1, 4>(keys, shared.query, shared.weights, lane,
                                                        sums);
    store(tile, sum_over_heads(sums, lane));
  }
}

template <int kHeadTiles, class Shared, class Ready, class Store>
__device__ void stream_fp8(const TileSource& source, TileRun run, Shared& shared, int lane,
                           Ready ready, Store store) {
  auto& ring = shared.ring[threadIdx.x / 32];
  const auto request = [&](int64_t tile, int stage) {
    if (tile < run.last) {
      const std::byte* from = source(tile);
      for (int i = lane; i < kFp8TileChunks; i += 32) {
        copy_async_16(ring[stage] + i * 16, from + i * 16);
      }
    }
    commit_copies();
  };
  for (int s = 0; s < kStages - 1; ++s) request(run.first + s * kWarps, s);
  ready();
  int stage = 0;
  for (int64_t tile = run.first; tile < run.last; tile += kWarps) {
    wait_copies<kStages - 2>();
    __syncwarp();  // the tile is whole, and the stage before it is read by all lanes
    KeyFragment keys[1];
    load_fp8_keys(ring[stage], lane, keys[0]);
    const float scale = fp8_key_scale(ring[stage], lane / 4 + lane % 2 * 8);
    request(tile + (kStages - 1) * kWarps, (stage + kStages - 1) % kStages);
    float sums[2] = {};
    score_keys<IndexKeyFormat::kFp8, kHeadTiles, 1, 4>(keys, shared.query, shared.weights, lane,
                                                       sums);
    store(tile, sum_over_heads(sums, lane) * scale);
    stage = (stage + 1) % kStages;
  }
  __syncwarp();  // the next query starts the ring anew
}

// Two blocks on an SM: 128 registers.
template <IndexKeyFormat kFormat, int kHeadTiles>
__global__ void __launch_bounds__(kThreads, 2) decode_index_scores(IndexScoresArgs args) {
  using Memory = Shared<kFormat, kHeadTiles>;
  extern __shared__ __align__(16) std::byte memory[];
  Memory& shared = *reinterpret_cast<Memory*>(memory);
  count_tiles(args, shared);
  const long long total = shared.first_tile[kMaxTokens];
  long long begin = total * blockIdx.x / gridDim.x;
  const long long end = total * (blockIdx.x + 1) / gridDim.x;
  const int lane = threadIdx.x % 32;
  while (begin < end) {
    const int token = token_of_tile(shared, begin);
    const long long base = shared.first_tile[token];
    const long long stop = min(end, shared.first_tile[token + 1]);
    const TileRun run = {begin - base + threadIdx.x / 32, stop - base};
    const TileSource source = {
        args.key_rows, args.block_table + args.requests[token] * args.max_pages,
        kFormat == IndexKeyFormat::kBf16 ? kTunedHeadDim * 2 : kFp8IndexRowBytes};
    const int64_t visible = args.visible[token];
    float* row = args.scores + token * args.scores_stride;
    const auto store = [&](int64_t tile, float score) {
      const int64_t key = tile * kTileKeys + lane / 4 + lane % 2 * 8;
      if (lane % 4 < 2 && key < visible) row[key] = score;
    };
    const auto ready = [&] {
      __syncthreads();  // nobody reads the query before this one any more
      load_query<kFormat>(args, token, shared);
      __syncthreads();
    };
    if constexpr (kFormat == IndexKeyFormat::kBf16) {
      stream_bf16<kHeadTiles>(source, run, shared, lane, ready, store);
    } else {
      stream_fp8<kHeadTiles>(source, run, shared, lane, ready, store);
    }
    begin = stop;
  }
}

template <IndexKeyFormat kFormat, int kHeadTiles>
cudaError_t launch(const IndexScoresArgs& args, int blocks, cudaStream_t stream) {
  constexpr int kBytes = sizeof(Shared<kFormat, kHeadTiles>);
  static_assert(kBytes <= kMaxIndexSharedBytes);
  const auto kernel = decode_index_scores<kFormat, kHeadTiles>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess) return error;
  kernel<<<blocks, kThreads, kBytes, stream>>>(args);
  return cudaGetLastError();
}

cudaError_t launch_tuned(const IndexScoresArgs& args, int blocks, cudaStream_t stream) {
  const bool bf16 = args.format == IndexKeyFormat::kBf16;
  if (args.heads == 32) {
    return bf16 ? launch<IndexKeyFormat::kBf16, 4>(args, blocks, stream)
                : launch<IndexKeyFormat::kFp8, 4>(args, blocks, stream);
  }
  return bf16 ? launch<IndexKeyFormat::kBf16, 8>(args, blocks, stream)
              : launch<IndexKeyFormat::kFp8, 8>(args, blocks, stream);
}

}  // namespace

bool index_scores_are_tuned(const IndexScoresArgs& args) {
  return (args.heads == 32 || args.heads == 64) && args.head_dim == kTunedHeadDim;
}

cudaError_t launch_decode_index_scores(const IndexScoresArgs& args, cudaStream_t stream) {
  if (!index_scores_are_tuned(args)) return cudaErrorInvalidValue;
  int device = 0, multiprocessors = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  }
  for (int64_t first = 0; error == cudaSuccess && first < args.tokens; first += kMaxTokens) {
    IndexScoresArgs part = args;
    part.q += first * args.heads * args.head_dim;
    part.weights += first * args.heads;
    part.requests += first;
    part.visible += first;
    part.scores += first * args.scores_stride;
    part.tokens = args.tokens - first < kMaxTokens ? args.tokens - first : kMaxTokens;
    error = launch_tuned(part, 2 * multiprocessors, stream);
  }
  return error;
}

}  // namespace topknot::attention
