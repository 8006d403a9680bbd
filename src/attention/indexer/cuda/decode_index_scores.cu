// Decode: every warp streams the keys of one query at a time. Bound by memory bandwidth.
//
// bf16 keys go from global memory to registers in fragment order, one step ahead; 16 warps on an SM
// keep 64 KiB in flight. fp8 rows of 132 bytes are not 16-byte aligned but 16 of them are, so each
// warp copies whole steps into a ring of its own.
// The grid is one wave. Blocks share the steps of all queries evenly, whatever their lengths: each
// computes the same prefix sums of steps and takes its part of the total.
#include "attention/indexer/cuda/score_tile.cuh"

namespace topknot::attention {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kMaxTokens = kThreads;  // of one launch: each thread counts the steps of one token
constexpr int kStages = 2;            // of the ring of fp8 keys; those in use are in registers

// What a warp scores at once: two tiles of 8 keys, in registers.
constexpr int kStepTiles = 2;
constexpr int kStepKeys = kStepTiles * 8;
// On an SM: 128 registers, for bf16 keys of two steps at once. A third block for fp8 keys, which
// wait in shared memory, spills and gains nothing.
constexpr int kBlocks = 2;

using KeyTile = uint32_t[kKeySteps][2];  // 8 keys as B operands

struct Ring {
  static constexpr int kStageBytes = kStepKeys * kFp8IndexRowBytes;
  alignas(16) std::byte stages[kStages][kStageBytes];
};

template <IndexKeyFormat kFormat>
struct Rings {
  Ring of_warp[kWarps];
};
template <>
struct Rings<IndexKeyFormat::kBf16> {};

template <IndexKeyFormat kFormat, int kHeads>
struct Shared {
  uint4 query[kHeads / 16][kKeySteps][32];  // A operands of each lane
  float weights[kHeads];
  long long first_step[kMaxTokens + 1];  // of each token, in the order of all steps
  long long warp_steps[kWarps];
  int visible[kMaxTokens];
  int requests[kMaxTokens];
  Rings<kFormat> rings;
};

// Fills first_step with the exclusive prefix sums over tokens and the total behind them.
template <IndexKeyFormat kFormat, class Shared>
__device__ void count_steps(const IndexScoresArgs& args, Shared& shared) {
  const int thread = threadIdx.x;
  const int lane = thread % 32;
  long long steps = 0;
  if (thread < args.tokens) {
    const int visible = args.visible[thread];
    shared.visible[thread] = visible;
    shared.requests[thread] = args.requests[thread];
    if (visible > args.unscored_up_to) {
      steps = (visible + kStepKeys - 1) / kStepKeys;
    }
  }
  long long sum = steps;
  for (int step = 1; step < 32; step *= 2) {
    const long long other = __shfl_up_sync(0xFFFF'FFFFu, sum, step);
    if (lane >= step) sum += other;
  }
  if (lane == 31) shared.warp_steps[thread / 32] = sum;
  __syncthreads();
  for (int warp = 0; warp < thread / 32; ++warp) sum += shared.warp_steps[warp];
  shared.first_step[thread + 1] = sum;
  if (thread == 0) shared.first_step[0] = 0;
  __syncthreads();
}

// The token that step `at` of all belongs to.
template <class Shared>
__device__ int token_of_step(const Shared& shared, int tokens, long long at) {
  int low = 0, high = tokens;  // first_step[low] <= at < first_step[high]
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (shared.first_step[middle] <= at ? low : high) = middle;
  }
  return low;
}

// The even head of the two that rows g and g + 8 of head tile m stand for.
__device__ int head_of(int m, int lane) { return m * 16 + lane / 16 * 8 + lane / 4 % 4 * 2; }

template <IndexKeyFormat kFormat, int kHeads, class Shared>
__device__ void load_query(const IndexScoresArgs& args, int64_t token, Shared& shared) {
  const uint16_t* q = args.q + token * (kHeads * kTunedHeadDim);
  constexpr int kEach = kHeads / 16 * kKeySteps * 32 / kThreads;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    const int at = i * kThreads + static_cast<int>(threadIdx.x);
    const int lane = at % 32;
    const int step = at / 32 % kKeySteps;
    const int m = at / 32 / kKeySteps;
    const uint16_t* from = q + head_of(m, lane) * kTunedHeadDim + dims_of<kFormat>(step, lane % 4);
    const uint2 even = *reinterpret_cast<const uint2*>(from);
    const uint2 odd = *reinterpret_cast<const uint2*>(from + kTunedHeadDim);
    shared.query[m][step][lane] = make_uint4(even.x, odd.x, even.y, odd.y);
  }
  if (threadIdx.x < kHeads) {
    shared.weights[threadIdx.x] = args.weights[token * kHeads + threadIdx.x];
  }
}

// Rows of 8 consecutive keys.
__device__ void load_bf16_tile(const std::byte* rows, int lane, KeyTile& keys) {
  const std::byte* row = rows + lane / 4 * (kTunedHeadDim * 2);
#pragma unroll
  for (int s = 0; s < kKeySteps; s += 2) {
    const uint4 quad = load_once(row + 2 * dims_of<IndexKeyFormat::kBf16>(s, lane % 4));
    keys[s][0] = quad.x, keys[s][1] = quad.y, keys[s + 1][0] = quad.z, keys[s + 1][1] = quad.w;
  }
}

__device__ void load_fp8_tile(const std::byte* rows, int lane, KeyTile& keys) {
  const std::byte* row = rows + lane / 4 * kFp8IndexRowBytes;
#pragma unroll
  for (int s = 0; s < kKeySteps; ++s) {
    const auto word =
        *reinterpret_cast<const uint32_t*>(row + dims_of<IndexKeyFormat::kFp8>(s, lane % 4));
    keys[s][0] = e4m3_pair_as_half<0>(word);
    keys[s][1] = e4m3_pair_as_half<2>(word);
  }
}

// Which key of a step the lane ends up with; two lanes do, and one of them stores it.
__device__ int stored_key(int lane) { return lane / 16 * 8 + lane % 4 * 2 + lane / 4 % 2; }
__device__ bool stores_key(int lane) { return lane / 8 % 2 == 0; }

// Sums [tile][even or odd key] of each lane's heads to the score of stored_key().
__device__ float sum_over_heads(const float (&sums)[kStepTiles][2], int lane) {
  const float even = add_across(sums[0][0], sums[1][0], lane, 16);
  const float odd = add_across(sums[0][1], sums[1][1], lane, 16);
  const float key = add_across(even, odd, lane, 4);
  return key + __shfl_xor_sync(0xFFFF'FFFFu, key, 8);
}

// The score of stored_key().
template <IndexKeyFormat kFormat, class Shared>
__device__ float score_step(const KeyTile (&keys)[kStepTiles], const Shared& shared, int lane) {
  constexpr int kHeadTiles = sizeof(shared.query) / sizeof(shared.query[0]);
  float sums[kStepTiles][2] = {};
#pragma unroll 2  // all four head tiles of 64 heads would spill
  for (int m = 0; m < kHeadTiles; ++m) {
    float dots[kStepTiles][4];
#pragma unroll
    for (int s = 0; s < kKeySteps; ++s) {
      const uint4 quad = shared.query[m][s][lane];
      const uint32_t heads[4] = {quad.x, quad.y, quad.z, quad.w};
#pragma unroll
      for (int n = 0; n < kStepTiles; ++n)
        multiply_tile<kFormat>(dots[n], heads, keys[n][s], s == 0);
    }
    const float2 weights = *reinterpret_cast<const float2*>(shared.weights + head_of(m, lane));
#pragma unroll
    for (int n = 0; n < kStepTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        sums[n][i] = fmaf(weights.x, relu(dots[n][i]), sums[n][i]);
        sums[n][i] = fmaf(weights.y, relu(dots[n][i + 2]), sums[n][i]);
      }
    }
  }
  return sum_over_heads(sums, lane);
}

// One query's keys as a sequence of steps.
template <IndexKeyFormat kFormat>
struct KeySource {
  static constexpr int kRowBytes =
      kFormat == IndexKeyFormat::kBf16 ? kTunedHeadDim * 2 : kFp8IndexRowBytes;
  const std::byte* rows;
  const int32_t* pages;

  __device__ const std::byte* operator()(unsigned step) const {
    constexpr unsigned kPageSteps = kIndexPageTokens / kStepKeys;
    const int page = pages[step / kPageSteps];
    return rows + int64_t{page} * (kIndexPageTokens * kRowBytes) +
           step % kPageSteps * (kStepKeys * kRowBytes);
  }
};

// A warp's steps of one query: first, first + kWarps, .. below last.
struct StepRun {
  int first;
  int last;
};

// Calls ready() once, when the first loads are under way, before anything is computed; and
// store(step, score) with what score_step gives.
template <class Source, class Shared, class Ready, class Store>
__device__ void stream_bf16(const Source& source, StepRun run, const Shared& shared, int lane,
                            Ready ready, Store store) {
  constexpr auto kFormat = IndexKeyFormat::kBf16;
  KeyTile next[kStepTiles];
  const auto request = [&](int step) {
    const std::byte* from = source(step);
#pragma unroll
    for (int n = 0; n < kStepTiles; ++n)
      load_bf16_tile(from + n * 8 * Source::kRowBytes, lane, next[n]);
  };
  if (run.first < run.last) request(run.first);
  ready();
#pragma unroll 1  // two steps at once do not fit in 128 registers
  for (int step = run.first; step < run.last; step += kWarps) {
    KeyTile keys[kStepTiles];
#pragma unroll
    for (int i = 0; i < kStepTiles * kKeySteps * 2; ++i) {
      keys[i / 16][i / 2 % kKeySteps][i % 2] = next[i / 16][i / 2 % kKeySteps][i % 2];
    }
    if (step + kWarps < run.last) request(step + kWarps);
    store(step, score_step<kFormat>(keys, shared, lane));
  }
}

template <class Source, class Shared, class Ready, class Store>
__device__ void stream_fp8(const Source& source, StepRun run, Shared& shared, int lane, Ready ready,
                           Store store) {
  constexpr auto kFormat = IndexKeyFormat::kFp8;
  Ring& ring = shared.rings.of_warp[threadIdx.x / 32];
  const auto request = [&](int step, int stage) {
    if (step < run.last) {
      const std::byte* from = source(step);
      for (int i = lane * 16; i < Ring::kStageBytes; i += 32 * 16) {
        copy_async_16(ring.stages[stage] + i, from + i);
      }
    }
    commit_copies();
  };
  for (int s = 0; s < kStages; ++s) request(run.first + s * kWarps, s);
  ready();
  int stage = 0;
  for (int step = run.first; step < run.last; step += kWarps) {
    wait_copies<kStages - 1>();
    __syncwarp();  // what all lanes copied is there
    const std::byte* from = ring.stages[stage];
    KeyTile keys[kStepTiles];
#pragma unroll
    for (int n = 0; n < kStepTiles; ++n)
      load_fp8_tile(from + n * 8 * Source::kRowBytes, lane, keys[n]);
    const float scale = fp8_key_scale(from, stored_key(lane));
    __syncwarp();  // all lanes have read the stage
    request(step + kStages * kWarps, stage);
    store(step, score_step<kFormat>(keys, shared, lane) * scale);
    stage = (stage + 1) % kStages;
  }
}

template <IndexKeyFormat kFormat, int kHeads>
__global__ void __launch_bounds__(kThreads, kBlocks) decode_index_scores(IndexScoresArgs args) {
  using Memory = Shared<kFormat, kHeads>;
  extern __shared__ __align__(16) std::byte memory[];
  Memory& shared = *reinterpret_cast<Memory*>(memory);
  count_steps<kFormat>(args, shared);
  long long begin = shared.first_step[kMaxTokens] * blockIdx.x / gridDim.x;
  const int lane = threadIdx.x % 32;
  // Computed anew each time: with 64 heads there is no register left to keep it.
  const auto end = [&] { return shared.first_step[kMaxTokens] * (blockIdx.x + 1) / gridDim.x; };
  while (begin < end()) {
    const int token = token_of_step(shared, static_cast<int>(args.tokens), begin);
    const long long base = shared.first_step[token];
    const long long stop = min(end(), shared.first_step[token + 1]);
    const StepRun run = {static_cast<int>(begin - base + threadIdx.x / 32),
                         static_cast<int>(stop - base)};
    const KeySource<kFormat> source = {args.key_rows,
                                       args.block_table + shared.requests[token] * args.max_pages};
    const int visible = shared.visible[token];
    float* row = args.scores + int64_t{token} * args.scores_stride;
    const auto store = [&](int step, float score) {
      const int key = step * kStepKeys + stored_key(lane);
      if (stores_key(lane) && key < visible) row[key] = score;
    };
    const auto ready = [&] {
      __syncthreads();  // nobody reads the query before this one any more
      load_query<kFormat, kHeads>(args, token, shared);
      __syncthreads();
    };
    if constexpr (kFormat == IndexKeyFormat::kBf16) {
      stream_bf16(source, run, shared, lane, ready, store);
    } else {
      stream_fp8(source, run, shared, lane, ready, store);
    }
    begin = stop;
  }
}

template <IndexKeyFormat kFormat, int kHeads>
cudaError_t launch(const IndexScoresArgs& args, int multiprocessors, cudaStream_t stream) {
  constexpr int kBytes = sizeof(Shared<kFormat, kHeads>);
  static_assert(kBytes <= kIndexScoresSharedBytes);
  const auto kernel = decode_index_scores<kFormat, kHeads>;
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes);
  if (error != cudaSuccess) return error;
  kernel<<<kBlocks * multiprocessors, kThreads, kBytes, stream>>>(args);
  return cudaGetLastError();
}

cudaError_t launch_tuned(const IndexScoresArgs& args, int multiprocessors, cudaStream_t stream) {
  const bool bf16 = args.format == IndexKeyFormat::kBf16;
  if (args.heads == 32) {
    return bf16 ? launch<IndexKeyFormat::kBf16, 32>(args, multiprocessors, stream)
                : launch<IndexKeyFormat::kFp8, 32>(args, multiprocessors, stream);
  }
  return bf16 ? launch<IndexKeyFormat::kBf16, 64>(args, multiprocessors, stream)
              : launch<IndexKeyFormat::kFp8, 64>(args, multiprocessors, stream);
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
    error = launch_tuned(part, multiprocessors, stream);
  }
  return error;
}

}  // namespace topknot::attention
