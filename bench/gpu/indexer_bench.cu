// Times the GPU kernels of the indexer: scores, selection, slot map, quantization. Each result is
// checked before it is timed. Needs a GPU and nothing but the CUDA runtime; see bench/README.md.
//
//   indexer_bench [--json] [NAME..]   only cases whose name contains one of the NAMEs
//
// One call after another in a CUDA graph, each on its own data where that fits, so that the caches
// hold little of what a call reads; median of the replays.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "attention/indexer/cuda/index_scores.h"
#include "attention/indexer/cuda/quantize_index.h"
#include "attention/indexer/cuda/top_k.h"
#include "kvcache/cuda/cuda_slot_map.h"

namespace {

using namespace topknot::attention;

constexpr int kReplays = 15;
constexpr int64_t kColdBytes = int64_t{128} << 20;  // twice the largest second-level cache
constexpr int64_t kWorkspaceBytes = int64_t{256} << 20;
constexpr int kTopK = 2048;
constexpr int kHeadDim = 128;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "indexer_bench: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(int64_t count) : count_(count) {
    void* data = nullptr;
    check(cudaMalloc(&data, static_cast<size_t>(bytes())), "cudaMalloc");
    data_ = static_cast<T*>(data);
    check(cudaMemset(data_, 0, static_cast<size_t>(bytes())), "cudaMemset");
  }
  explicit DeviceArray(const std::vector<T>& values)
      : DeviceArray(static_cast<int64_t>(values.size())) {
    check(cudaMemcpy(data_, values.data(), static_cast<size_t>(bytes()), cudaMemcpyHostToDevice),
          "copy to the device");
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  T* data() const { return data_; }
  int64_t bytes() const { return count_ * static_cast<int64_t>(sizeof(T)); }
  std::vector<T> part(int64_t first, int64_t count) const {
    std::vector<T> out(static_cast<size_t>(count));
    check(cudaMemcpy(out.data(), data_ + first, out.size() * sizeof(T), cudaMemcpyDeviceToHost),
          "copy from the device");
    return out;
  }

 private:
  T* data_ = nullptr;
  int64_t count_;
};

__device__ float noise(uint64_t at) {  // about normal: four uniform bytes from a mixed counter
  at = (at ^ at >> 31) * 0x7FB5D329728EA185ull;
  at = (at ^ at >> 27) * 0x81DADEF4BC2DD44Dull;
  const auto bits = static_cast<uint32_t>(at >> 32);
  const float sum =
      static_cast<float>((bits & 255) + (bits >> 8 & 255) + (bits >> 16 & 255) + (bits >> 24)) +
      static_cast<float>(at & 0xFFFF) * 0x1p-16f;
  return (sum - 510.5f) / 147.8f;
}

__global__ void fill_bf16(uint16_t* out, int64_t count, uint64_t seed) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    out[i] = static_cast<uint16_t>(__float_as_uint(noise(seed + i)) >> 16);
  }
}

__global__ void fill_f32(float* out, int64_t count, uint64_t seed, float scale) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) {
    out[i] = noise(seed + i) * scale;
  }
}

struct Options {
  bool json = false;
  std::vector<std::string> names;
  bool wants(const std::string& name) const {
    return names.empty() || std::any_of(names.begin(), names.end(), [&](const std::string& n) {
             return name.find(n) != std::string::npos;
           });
  }
};

// Microseconds of one call: `calls` of them in a graph, call(i) enqueues the i-th.
double time_us(int calls, const std::function<cudaError_t(int, cudaStream_t)>& call) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaStreamCreate(&stream), "stream");
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  for (int i = 0; i < calls; ++i) check(call(i, stream), "launch");
  check(cudaStreamEndCapture(stream, &graph), "capture");
  check(cudaGraphInstantiate(&exec, graph, 0), "instantiate");
  std::vector<float> times;
  for (int i = 0; i < kReplays + 2; ++i) {
    check(cudaEventRecord(begin, stream), "event");
    check(cudaGraphLaunch(exec, stream), "graph launch");
    check(cudaEventRecord(end, stream), "event");
    check(cudaEventSynchronize(end), "run");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "time");
    if (i >= 2) times.push_back(ms);
  }
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaStreamDestroy(stream);
  std::nth_element(times.begin(), times.begin() + kReplays / 2, times.end());
  return static_cast<double>(times[kReplays / 2]) * 1000 / calls;
}

double read_bandwidth_gb_s() {  // of the device, from bus width and clock
  int khz = 0, bits = 0;
  cudaDeviceGetAttribute(&khz, cudaDevAttrMemoryClockRate, 0);
  cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, 0);
  return 2.0 * khz * (bits / 8) * 1e-6;
}

void report(const Options& options, const std::string& name, double us, double bytes,
            double flops) {
  const double gb_s = bytes / us * 1e-3;
  const double share = gb_s / read_bandwidth_gb_s() * 100;
  const double tflops = flops / us * 1e-6;
  const char* format = options.json ? "{\"name\": \"%s\", \"us\": %.2f, \"gb_per_s\": %.1f, "
                                      "\"bandwidth_percent\": %.1f, \"tflop_per_s\": %.1f}\n"
                                    : "%-34s %9.2f us %8.1f GB/s %5.1f %% %7.1f TFLOP/s\n";
  std::printf(format, name.c_str(), us, gb_s, share, tflops);
  std::fflush(stdout);
}

float bf16_value(uint16_t bits) {
  const uint32_t wide = uint32_t{bits} << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

void fail(const std::string& name, const char* why) {
  std::fprintf(stderr, "indexer_bench: %s: wrong result: %s\n", name.c_str(), why);
  std::exit(1);
}

// Requests of `context` keys each; their queries see all of it, or all but what follows them.
struct ScoreCase {
  const char* name;
  int64_t requests, tokens, context;
  int32_t heads;
  IndexKeyFormat format;
  bool prefill;
};

class ScoreProblem {
 public:
  ScoreProblem(const ScoreCase& c, int64_t set)
      : c_(c),
        pages_(c.requests * ((c.context + kIndexPageTokens - 1) / kIndexPageTokens)),
        keys_(pages_ * kIndexPageTokens * kHeadDim),
        rows_(c.format == IndexKeyFormat::kFp8 ? pages_ * kIndexPageTokens * kFp8IndexRowBytes
                                               : 16),
        q_(c.tokens * c.heads * kHeadDim),
        weights_(c.tokens * c.heads),
        table_(pages_),
        requests_(c.tokens),
        visible_(c.tokens) {
    const auto seed = static_cast<uint64_t>(set) << 40;
    fill_bf16<<<1024, 256>>>(keys_.data(), keys_.bytes() / 2, seed);
    fill_bf16<<<1024, 256>>>(q_.data(), q_.bytes() / 2, seed + (1ull << 38));
    fill_f32<<<256, 256>>>(weights_.data(), weights_.bytes() / 4, seed + (1ull << 39), 0.02f);
    fill_tables(static_cast<uint32_t>(set));
    if (c.format == IndexKeyFormat::kFp8) quantize();
    check(cudaDeviceSynchronize(), "fill");
  }

  IndexScoresArgs args(float* scores, int64_t first, int64_t tokens) const {
    const bool fp8 = c_.format == IndexKeyFormat::kFp8;
    const auto* rows = fp8 ? rows_.data() : reinterpret_cast<const std::byte*>(keys_.data());
    return {q_.data() + first * c_.heads * kHeadDim,
            weights_.data() + first * c_.heads,
            rows,
            table_.data(),
            pages_ / c_.requests,
            requests_.data() + first,
            visible_.data() + first,
            scores,
            c_.context,
            tokens,
            c_.context,
            kTopK,
            c_.heads,
            kHeadDim,
            c_.format};
  }
  int64_t key_bytes() const {
    return pages_ * kIndexPageTokens *
           (c_.format == IndexKeyFormat::kFp8 ? kFp8IndexRowBytes : kHeadDim * 2);
  }

  // A few scores of bf16 keys against double sums.
  void verify(const DeviceArray<float>& scores) const {
    if (c_.format == IndexKeyFormat::kFp8) return;  // rotated and rounded: the tests compare those
    const auto table = table_.part(0, pages_);
    const auto q = q_.part(0, c_.heads * kHeadDim);
    const auto weights = weights_.part(0, c_.heads);
    for (int64_t j = 0; j < visible_.part(0, 1)[0]; j += 997) {
      const int64_t slot =
          int64_t{table[static_cast<size_t>(j / kIndexPageTokens)]} * kIndexPageTokens +
          j % kIndexPageTokens;
      const auto key = keys_.part(slot * kHeadDim, kHeadDim);
      double want = 0, size = 0;
      for (size_t h = 0; h < static_cast<size_t>(c_.heads); ++h) {
        double dot = 0;
        for (size_t i = 0; i < kHeadDim; ++i) {
          dot += static_cast<double>(bf16_value(q[h * kHeadDim + i])) *
                 static_cast<double>(bf16_value(key[i]));
        }
        want += static_cast<double>(weights[h]) * std::max(dot, 0.0);
        size += std::fabs(static_cast<double>(weights[h])) * 100;
      }
      const double got = static_cast<double>(scores.part(j, 1)[0]);
      if (!(std::fabs(got - want) <= size * 1e-5)) fail(c_.name, "a score is off");
    }
  }

 private:
  void fill_tables(uint32_t seed) {
    std::vector<int32_t> table(static_cast<size_t>(pages_));
    std::iota(table.begin(), table.end(), 0);
    std::shuffle(table.begin(), table.end(), std::mt19937(seed));
    std::vector<int32_t> requests, visible;
    const int64_t each = c_.tokens / c_.requests;
    for (int64_t t = 0; t < c_.tokens; ++t) {
      requests.push_back(static_cast<int32_t>(t / each));
      visible.push_back(static_cast<int32_t>(c_.context - each + t % each + 1));
    }
    copy(table, table_);
    copy(requests, requests_);
    copy(visible, visible_);
  }
  static void copy(const std::vector<int32_t>& from, const DeviceArray<int32_t>& to) {
    check(cudaMemcpy(to.data(), from.data(), from.size() * sizeof(int32_t), cudaMemcpyHostToDevice),
          "copy");
  }
  void quantize() {
    const int64_t slots = pages_ * kIndexPageTokens;
    std::vector<int32_t> all(static_cast<size_t>(slots));
    std::iota(all.begin(), all.end(), 0);
    const DeviceArray<int32_t> map(all);
    check(launch_quantize_index_keys({keys_.data(), map.data(), rows_.data(), slots}, nullptr),
          "quantize keys");
    check(launch_quantize_index_queries(
              {q_.data(), weights_.data(), q_.data(), weights_.data(), c_.tokens * c_.heads},
              nullptr),
          "quantize queries");
    check(cudaDeviceSynchronize(), "quantize");
  }

  ScoreCase c_;
  int64_t pages_;
  DeviceArray<uint16_t> keys_;
  DeviceArray<std::byte> rows_;
  DeviceArray<uint16_t> q_;
  DeviceArray<float> weights_;
  DeviceArray<int32_t> table_, requests_, visible_;
};

void bench_scores(const Options& options, const ScoreCase& c) {
  if (!options.wants(c.name)) return;
  std::vector<std::unique_ptr<ScoreProblem>> sets;
  sets.push_back(std::make_unique<ScoreProblem>(c, 0));
  const int64_t bytes = sets[0]->key_bytes();
  while (!c.prefill && static_cast<int64_t>(sets.size()) * bytes < kColdBytes) {
    sets.push_back(std::make_unique<ScoreProblem>(c, static_cast<int64_t>(sets.size())));
  }
  // A prefill is scored in slices of what the workspace holds.
  const int64_t slice = std::min(c.tokens, kWorkspaceBytes / 4 / c.context);
  const DeviceArray<float> scores(slice * c.context);
  const auto call = [&](int i, cudaStream_t stream) {
    const auto& set = *sets[static_cast<size_t>(i) % sets.size()];
    if (!c.prefill) return launch_decode_index_scores(set.args(scores.data(), 0, c.tokens), stream);
    for (int64_t first = 0; first < c.tokens; first += slice) {
      const auto args = set.args(scores.data(), first, std::min(slice, c.tokens - first));
      check(launch_prefill_index_scores(args, stream), "prefill");
    }
    return cudaSuccess;
  };
  if (c.prefill) {
    check(launch_prefill_index_scores(sets[0]->args(scores.data(), 0, slice), nullptr), "prefill");
  } else {
    check(call(0, nullptr), "decode");
  }
  check(cudaDeviceSynchronize(), "scores");
  sets[0]->verify(scores);
  const int calls = c.prefill ? 1 : std::max(8, static_cast<int>(sets.size()));
  const double us = time_us(calls, call);
  const double flops = 2.0 * static_cast<double>(c.tokens * c.context) * c.heads * kHeadDim;
  report(options, c.name, us, static_cast<double>(bytes), flops);
}

struct TopKCase {
  const char* name;
  int64_t rows, columns;
  bool split;
};

int64_t order_of(float score) {
  int32_t bits;
  std::memcpy(&bits, &score, sizeof bits);
  return bits < 0 ? -static_cast<int64_t>(bits & 0x7FFF'FFFF) : bits;
}

void verify_top_k(const TopKCase& c, const DeviceArray<float>& scores,
                  const DeviceArray<int32_t>& positions) {
  for (const int64_t row : {int64_t{0}, c.rows / 2, c.rows - 1}) {
    const auto values = scores.part(row * c.columns, c.columns);
    const auto got = positions.part(row * kTopK, kTopK);
    std::vector<int32_t> want(values.size());
    std::iota(want.begin(), want.end(), 0);
    std::nth_element(want.begin(), want.begin() + kTopK, want.end(), [&](int32_t a, int32_t b) {
      const int64_t x = order_of(values[static_cast<size_t>(a)]);
      const int64_t y = order_of(values[static_cast<size_t>(b)]);
      return x != y ? x > y : a < b;
    });
    want.resize(kTopK);
    std::sort(want.begin(), want.end());
    if (got != want) fail(c.name, "the selection differs");
  }
}

void bench_top_k(const Options& options, const TopKCase& c) {
  if (!options.wants(c.name)) return;
  const DeviceArray<float> scores(c.rows * c.columns);
  fill_f32<<<1024, 256>>>(scores.data(), c.rows * c.columns, 17, 1.0f);
  const DeviceArray<int32_t> visible(
      std::vector<int32_t>(static_cast<size_t>(c.rows), static_cast<int32_t>(c.columns)));
  const DeviceArray<int32_t> positions(c.rows * kTopK);
  const DeviceArray<std::byte> workspace(c.split ? split_top_k_workspace_bytes(c.rows) : 16);
  const TopKArgs args = {scores.data(), c.columns, visible.data(), positions.data(), c.rows, kTopK};
  const auto call = [&](int, cudaStream_t stream) {
    return c.split ? launch_split_top_k(args, {workspace.data(), c.rows}, stream)
                   : launch_row_top_k(args, stream);
  };
  check(call(0, nullptr), "top-k");
  check(cudaDeviceSynchronize(), "top-k");
  verify_top_k(c, scores, positions);
  report(options, c.name, time_us(c.rows > 512 ? 2 : 16, call), static_cast<double>(scores.bytes()),
         0);
}

void bench_slot_map(const Options& options, const char* name, int64_t rows) {
  if (!options.wants(name)) return;
  constexpr int64_t kPages = 2048;
  std::mt19937 random(3);
  std::vector<int32_t> table(kPages), values(static_cast<size_t>(rows * kTopK));
  std::iota(table.begin(), table.end(), 0);
  std::shuffle(table.begin(), table.end(), random);
  for (auto& v : values) v = static_cast<int32_t>(random() % (kPages * kIndexPageTokens));
  const DeviceArray<int32_t> pages(table), positions(values), slots(rows * kTopK);
  const DeviceArray<int32_t> requests(rows), valid(rows);
  const topknot::kvcache::CudaSlotMapArgs args = {
      positions.data(), requests.data(), pages.data(), slots.data(),
      valid.data(),     nullptr,         rows,         kTopK,
      kPages,           kIndexPageTokens};
  const auto call = [&](int, cudaStream_t stream) {
    return topknot::kvcache::launch_slot_map(args, stream);
  };
  check(call(0, nullptr), "slot map");
  const auto got = slots.part(0, rows * kTopK);
  for (size_t i = 0; i < got.size(); ++i) {
    const auto page = table[static_cast<size_t>(values[i] / kIndexPageTokens)];
    if (got[i] != page * kIndexPageTokens + values[i] % kIndexPageTokens) fail(name, "a slot");
  }
  report(options, name, time_us(16, call), static_cast<double>(positions.bytes() * 2), 0);
}

void bench_quantize(const Options& options, const char* name, int64_t vectors) {
  if (!options.wants(name)) return;
  const DeviceArray<uint16_t> in(vectors * kHeadDim), out(vectors * kHeadDim);
  const DeviceArray<float> weights(vectors), weights_out(vectors);
  fill_bf16<<<256, 256>>>(in.data(), vectors * kHeadDim, 5);
  const auto call = [&](int, cudaStream_t stream) {
    return launch_quantize_index_queries(
        {in.data(), weights.data(), out.data(), weights_out.data(), vectors}, stream);
  };
  report(options, name, time_us(16, call), static_cast<double>(in.bytes() * 2), 0);
}

void bench_all(const Options& options) {
  constexpr auto kBf16 = IndexKeyFormat::kBf16;
  constexpr auto kFp8 = IndexKeyFormat::kFp8;
  constexpr int64_t k1K = 1024;
  for (const ScoreCase& c : {
           ScoreCase{"scores bf16 32h 1x4K", 1, 1, 4 * k1K, 32, kBf16, false},
           ScoreCase{"scores bf16 32h 1x32K", 1, 1, 32 * k1K, 32, kBf16, false},
           ScoreCase{"scores bf16 32h 1x128K", 1, 1, 128 * k1K, 32, kBf16, false},
           ScoreCase{"scores bf16 32h 1x1M", 1, 1, 1024 * k1K, 32, kBf16, false},
           ScoreCase{"scores bf16 32h 16x32K", 16, 16, 32 * k1K, 32, kBf16, false},
           ScoreCase{"scores bf16 32h 64x32K", 64, 64, 32 * k1K, 32, kBf16, false},
           ScoreCase{"scores bf16 64h 1x128K", 1, 1, 128 * k1K, 64, kBf16, false},
           ScoreCase{"scores bf16 64h 64x32K", 64, 64, 32 * k1K, 64, kBf16, false},
           ScoreCase{"scores fp8 32h 1x128K", 1, 1, 128 * k1K, 32, kFp8, false},
           ScoreCase{"scores fp8 32h 64x32K", 64, 64, 32 * k1K, 32, kFp8, false},
           ScoreCase{"scores fp8 64h 64x32K", 64, 64, 32 * k1K, 64, kFp8, false},
           ScoreCase{"scores bf16 32h 4096x32K prefill", 1, 4096, 32 * k1K, 32, kBf16, true},
           ScoreCase{"scores bf16 64h 4096x32K prefill", 1, 4096, 32 * k1K, 64, kBf16, true},
           ScoreCase{"scores fp8 32h 4096x32K prefill", 1, 4096, 32 * k1K, 32, kFp8, true},
       }) {
    bench_scores(options, c);
  }
  for (const TopKCase& c : {
           TopKCase{"top-k row 1x4K", 1, 4 * k1K, false},
           TopKCase{"top-k row 1x32K", 1, 32 * k1K, false},
           TopKCase{"top-k row 64x32K", 64, 32 * k1K, false},
           TopKCase{"top-k row 2048x32K", 2048, 32 * k1K, false},
           TopKCase{"top-k row 4096x32K", 4096, 32 * k1K, false},
           TopKCase{"top-k row 64x128K", 64, 128 * k1K, false},
           TopKCase{"top-k row 512x128K", 512, 128 * k1K, false},
           TopKCase{"top-k split 1x4K", 1, 4 * k1K, true},
           TopKCase{"top-k split 1x32K", 1, 32 * k1K, true},
           TopKCase{"top-k split 1x128K", 1, 128 * k1K, true},
           TopKCase{"top-k split 1x1M", 1, 1024 * k1K, true},
           TopKCase{"top-k split 16x32K", 16, 32 * k1K, true},
           TopKCase{"top-k split 64x32K", 64, 32 * k1K, true},
           TopKCase{"top-k split 64x128K", 64, 128 * k1K, true},
           TopKCase{"top-k split 512x128K", 512, 128 * k1K, true},
       }) {
    bench_top_k(options, c);
  }
  bench_slot_map(options, "slot map 1x2048", 1);
  bench_slot_map(options, "slot map 64x2048", 64);
  bench_slot_map(options, "slot map 4096x2048", 4096);
  bench_quantize(options, "quantize queries 64x32", 64 * 32);
  bench_quantize(options, "quantize queries 4096x32", 4096 * 32);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0) {
      options.json = true;
    } else {
      options.names.emplace_back(argv[i]);
    }
  }
  bench_all(options);
  return 0;
}
