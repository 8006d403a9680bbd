#include "bench/indexer_bench.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "attention/indexer/cuda/cuda_indexer.h"
#include "attention/indexer/cuda/quantize_index.h"
#include "base/checked_math.h"
#include "base/strings.h"
#include "base/try.h"
#include "bench/cuda/random.h"
#include "bench/timing.h"
#include "device/cuda/cuda_error.h"
#include "device/cuda/gpu.h"
#include "kvcache/cache.h"
#include "tensor/dequantize.h"

namespace topknot::bench {
namespace {

using attention::CudaIndexer;
using attention::CudaIndexerArgs;
using device::DeviceBuffer;
using kvcache::kPageTokens;
using kvcache::KvFormat;

constexpr int64_t kHeads = 32;
constexpr int64_t kHeadDim = 128;
constexpr int64_t kTopk = 2048;
// As in attention_bench.cc: the input sets of a graph read more than the second-level cache holds.
constexpr int64_t kColdBytes = 200'000'000;
constexpr int kMostSets = 48;

// The inputs and the result of one call.
struct Set {
  DeviceBuffer q, weights, keys, block_table, requests, visible, positions, scores;
  std::vector<int32_t> pages;  // [requests, max_pages]
  int64_t requests_count = 0;
  int64_t max_pages = 0;
};

class Bench {
 public:
  Bench(int device, device::Stream stream) : device_(device), stream_(std::move(stream)) {}

  Result<Row> run(const IndexerCase& c) {
    TOPKNOT_TRY(CudaIndexer indexer, CudaIndexer::create({.heads = kHeads,
                                                          .head_dim = kHeadDim,
                                                          .topk = kTopk,
                                                          .max_tokens = c.tokens,
                                                          .max_context = c.context},
                                                         c.format, stream_));
    const int64_t requests = c.prefill ? 1 : c.tokens;
    const int64_t read = requests * c.context * kvcache::row_bytes(c.format, kHeadDim, 0);
    const auto sets =
        static_cast<int>(c.prefill ? 1 : std::clamp<int64_t>(kColdBytes / read + 1, 2, kMostSets));
    std::vector<Set> inputs;
    for (int i = 0; i < sets; ++i) {
      TOPKNOT_TRY(Set set, make_set(c, i));
      inputs.push_back(std::move(set));
    }
    const auto call = [&](int i) {
      return indexer.run(arguments(c, inputs[static_cast<size_t>(i)]), stream_);
    };
    TOPKNOT_CHECK_OK(call(0));
    Row row = describe(c);
    TOPKNOT_TRY(row.error, error(c, inputs[0]));
    TOPKNOT_TRY(row.us, median_us(stream_, sets, call, c.prefill ? 5 : kReplays));
    return row;
  }

 private:
  static Row describe(const IndexerCase& c) {
    Row row{.name = "indexer", .format = std::string(kv_format_name(c.format))};
    row.shape = {{"heads", kHeads}, {"tokens", c.tokens}, {"context", c.context}, {"topk", kTopk}};
    const auto real = [](int64_t n) { return static_cast<double>(n); };
    const int64_t requests = c.prefill ? 1 : c.tokens;
    row.bytes = real(requests * c.context * kvcache::row_bytes(c.format, kHeadDim, 0) +
                     c.tokens * (kHeads * (kHeadDim * 2 + 4) + kTopk * 4));
    row.flops = 2 * real(c.tokens) * real(kHeads * kHeadDim) * visible_mean(c);
    // Sums of bf16 products in fp32; fp8 keys round them and the rotated queries.
    row.error_limit = c.format == KvFormat::kBf16 ? 1e-5 : 3e-2;
    return row;
  }

  static double visible_mean(const IndexerCase& c) {
    const double last = static_cast<double>(c.context);
    return c.prefill ? last - static_cast<double>(c.tokens - 1) / 2 : last;
  }
  static int64_t visible_of(const IndexerCase& c, int64_t token) {
    return c.prefill ? c.context - c.tokens + token + 1 : c.context;
  }

  Status status(cudaError_t error) const {
    return device::cuda_status(error, device_, "cannot make the inputs of a benchmark");
  }
  cudaStream_t handle() const { return static_cast<cudaStream_t>(stream_.get()); }

  Result<DeviceBuffer> allocate(int64_t bytes, std::string_view purpose) const {
    return DeviceBuffer::allocate(device_, static_cast<size_t>(bytes), purpose);
  }
  Result<DeviceBuffer> upload(const std::vector<int32_t>& values, std::string_view purpose) const {
    TOPKNOT_TRY(DeviceBuffer buffer,
                allocate(static_cast<int64_t>(values.size() * sizeof(int32_t)), purpose));
    TOPKNOT_CHECK_OK(device::copy_to_device(buffer.data(), values.data(), buffer.bytes(), stream_));
    return buffer;
  }

  Result<Set> make_set(const IndexerCase& c, int index) {
    Set set;
    set.requests_count = c.prefill ? 1 : c.tokens;
    set.max_pages = ceil_div<int64_t>(c.context, kPageTokens);
    const auto seed = static_cast<uint32_t>(200 + 3 * index);
    TOPKNOT_TRY(set.q, allocate(c.tokens * kHeads * kHeadDim * 2, "queries"));
    TOPKNOT_CHECK_OK(
        status(launch_random_bf16(set.q.data(), c.tokens * kHeads * kHeadDim, seed, handle())));
    TOPKNOT_TRY(set.weights, allocate(c.tokens * kHeads * 4, "weights"));
    TOPKNOT_CHECK_OK(
        status(launch_random_f32(set.weights.as<float>(), c.tokens * kHeads, seed + 1, handle())));
    TOPKNOT_CHECK_OK(make_keys(c, seed + 2, &set));
    set.pages.resize(static_cast<size_t>(set.requests_count * set.max_pages));
    std::iota(set.pages.begin(), set.pages.end(), 0);
    std::shuffle(set.pages.begin(), set.pages.end(), random_);
    std::vector<int32_t> requests, visible;
    for (int64_t t = 0; t < c.tokens; ++t) {
      requests.push_back(static_cast<int32_t>(c.prefill ? 0 : t));
      visible.push_back(static_cast<int32_t>(visible_of(c, t)));
    }
    TOPKNOT_TRY(set.block_table, upload(set.pages, "block table"));
    TOPKNOT_TRY(set.requests, upload(requests, "requests"));
    TOPKNOT_TRY(set.visible, upload(visible, "visible"));
    TOPKNOT_TRY(set.positions, allocate(c.tokens * kTopk * 4, "positions"));
    return set;
  }

  Status make_keys(const IndexerCase& c, uint32_t seed, Set* set) {
    const int64_t slots = set->requests_count * set->max_pages * kPageTokens;
    TOPKNOT_TRY(DeviceBuffer values, allocate(slots * kHeadDim * 2, "index keys"));
    TOPKNOT_CHECK_OK(status(launch_random_bf16(values.data(), slots * kHeadDim, seed, handle())));
    if (c.format == KvFormat::kBf16) {
      set->keys = std::move(values);
      return {};
    }
    const int64_t bytes = kvcache::row_bytes(c.format, kHeadDim, 0);
    TOPKNOT_TRY(set->keys, allocate(slots * bytes, "index keys"));
    std::vector<int32_t> order(static_cast<size_t>(slots));
    std::iota(order.begin(), order.end(), 0);
    TOPKNOT_TRY(const DeviceBuffer mapping, upload(order, "slot mapping"));
    TOPKNOT_CHECK_OK(
        status(attention::launch_quantize_index_keys({.keys_in = values.as<uint16_t>(),
                                                      .slots = mapping.as<int32_t>(),
                                                      .key_rows = set->keys.as<std::byte>(),
                                                      .tokens = slots},
                                                     handle())));
    return stream_.synchronize();  // before the values go away
  }

  CudaIndexerArgs arguments(const IndexerCase& c, const Set& set) const {
    CudaIndexerArgs args;
    args.q = set.q.as<uint16_t>();
    args.weights = set.weights.as<float>();
    args.keys = {c.format, set.keys.as<std::byte>(), kHeadDim,
                 kvcache::row_bytes(c.format, kHeadDim, 0),
                 set.requests_count * set.max_pages * kPageTokens};
    args.block_table = set.block_table.as<int32_t>();
    args.max_pages = set.max_pages;
    args.requests = set.requests.as<int32_t>();
    args.visible = set.visible.as<int32_t>();
    args.tokens = c.tokens;
    args.request_count = set.requests_count;
    args.max_visible = c.context;
    args.positions = set.positions.as<int32_t>();
    return args;
  }

  // By how much the best key left out beats the worst one taken, of the largest score; over three
  // tokens. Infinite where the list itself is wrong.
  Result<double> error(const IndexerCase& c, const Set& set) {
    double worst = 0;
    for (const int64_t token : {int64_t{0}, c.tokens / 2, c.tokens - 1}) {
      std::vector<int32_t> taken(kTopk);
      TOPKNOT_CHECK_OK(device::copy_to_host(
          taken.data(), set.positions.as<int32_t>() + token * kTopk, kTopk * 4, stream_));
      TOPKNOT_TRY(const std::vector<double> scores, reference(c, set, token));
      worst = std::max(worst, regret(scores, taken));
    }
    return worst;
  }

  static double regret(const std::vector<double>& scores, const std::vector<int32_t>& taken) {
    const size_t count = std::min(scores.size(), taken.size());
    std::vector<bool> in(scores.size());
    int32_t before = -1;
    for (size_t i = 0; i < taken.size(); ++i) {
      const bool good = i < count
                            ? taken[i] > before && static_cast<size_t>(taken[i]) < scores.size()
                            : taken[i] == -1;
      if (!good) return std::numeric_limits<double>::infinity();
      if (i < count) in[static_cast<size_t>(before = taken[i])] = true;
    }
    double least = std::numeric_limits<double>::infinity(), best = -least, largest = 0;
    for (size_t j = 0; j < scores.size(); ++j) {
      largest = std::max(largest, std::abs(scores[j]));
      if (in[j]) least = std::min(least, scores[j]);
      if (!in[j]) best = std::max(best, scores[j]);
    }
    return std::max(0.0, best - least) / largest;
  }

  Result<std::vector<float>> read_bf16(const DeviceBuffer& from, int64_t at, int64_t count) const {
    std::vector<uint16_t> bits(static_cast<size_t>(count));
    TOPKNOT_CHECK_OK(
        device::copy_to_host(bits.data(), from.as<uint16_t>() + at, bits.size() * 2, stream_));
    std::vector<float> values;
    for (const uint16_t each : bits) values.push_back(tensor::bf16_to_f32(each));
    return values;
  }

  // The definition, in double, over the keys as they were before any rounding to 8 bits: a rotation
  // of both sides changes no product.
  Result<std::vector<double>> reference(const IndexerCase& c, const Set& set, int64_t token) {
    TOPKNOT_TRY(const auto q, read_bf16(set.q, token * kHeads * kHeadDim, kHeads * kHeadDim));
    std::vector<float> weights(kHeads);
    TOPKNOT_CHECK_OK(device::copy_to_host(weights.data(), set.weights.as<float>() + token * kHeads,
                                          kHeads * 4, stream_));
    TOPKNOT_TRY(const std::vector<float> keys, keys_of(c, set, token));
    std::vector<double> scores;
    for (int64_t j = 0; j < visible_of(c, token); ++j) {
      double score = 0;
      for (int64_t h = 0; h < kHeads; ++h) {
        double dot = 0;
        for (int64_t i = 0; i < kHeadDim; ++i) {
          dot += static_cast<double>(q[static_cast<size_t>(h * kHeadDim + i)]) *
                 static_cast<double>(keys[static_cast<size_t>(j * kHeadDim + i)]);
        }
        score += static_cast<double>(weights[static_cast<size_t>(h)]) * std::max(dot, 0.0);
      }
      scores.push_back(score);
    }
    return scores;
  }

  // Keys of the token's request in order of position, a page at a time.
  Result<std::vector<float>> keys_of(const IndexerCase& c, const Set& set, int64_t token) const {
    const int64_t request = c.prefill ? 0 : token;
    const int64_t bytes = kvcache::row_bytes(c.format, kHeadDim, 0);
    std::vector<std::byte> page(static_cast<size_t>(kPageTokens * bytes));
    const kvcache::CacheRows rows = {c.format, page.data(), kHeadDim, bytes, kPageTokens};
    std::vector<float> keys(static_cast<size_t>(set.max_pages * kPageTokens * kHeadDim));
    for (int64_t p = 0; p < set.max_pages; ++p) {
      const int64_t id = set.pages[static_cast<size_t>(request * set.max_pages + p)];
      TOPKNOT_CHECK_OK(device::copy_to_host(
          page.data(), set.keys.as<std::byte>() + id * kPageTokens * bytes, page.size(), stream_));
      for (int64_t i = 0; i < kPageTokens; ++i) {
        float* key = keys.data() + (p * kPageTokens + i) * kHeadDim;
        kvcache::read_row(rows, i, key);
        if (c.format != KvFormat::kBf16) rotate(key);
      }
    }
    return keys;
  }

  // The normalised Hadamard transform, which is its own inverse.
  static void rotate(float* key) {
    for (int64_t half = 1; half < kHeadDim; half *= 2) {
      for (int64_t i = 0; i < kHeadDim; ++i) {
        if ((i & half) != 0) continue;
        const float a = key[i], b = key[i + half];
        key[i] = a + b;
        key[i + half] = a - b;
      }
    }
    for (int64_t i = 0; i < kHeadDim; ++i) key[i] /= std::sqrt(static_cast<float>(kHeadDim));
  }

  int device_;
  device::Stream stream_;
  std::mt19937_64 random_{20260701};
};

}  // namespace

std::vector<IndexerCase> indexer_cases(bool quick) {
  constexpr int64_t kShort = 4096, kMiddle = 32768, kLong = 131072, kPrompt = 4096;
  if (quick) return {{1, kLong}, {64, kMiddle}, {kPrompt, kMiddle, true}};
  return {{1, kShort},
          {1, kMiddle},
          {1, kLong},
          {64, kMiddle},
          {kPrompt, kMiddle, true},
          {1, kLong, false, KvFormat::kFp8Ds},
          {64, kMiddle, false, KvFormat::kFp8Ds},
          {kPrompt, kMiddle, true, KvFormat::kFp8Ds}};
}

Result<std::vector<Row>> bench_indexer(int cuda_device, std::span<const IndexerCase> cases,
                                       const std::function<void(size_t)>& done) {
  TOPKNOT_TRY(const device::CudaDevice gpu, find_gpu(cuda_device));
  TOPKNOT_TRY(device::Stream stream, device::Stream::create(gpu.index));
  Bench bench(gpu.index, std::move(stream));
  std::vector<Row> rows;
  for (size_t i = 0; i < cases.size(); ++i) {
    TOPKNOT_TRY(Row row, bench.run(cases[i]));
    rows.push_back(std::move(row));
    if (done) done(i + 1);
  }
  return rows;
}

}  // namespace topknot::bench
