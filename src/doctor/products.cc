#include "doctor/products.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/thread_pool.h"

namespace topknot::doctor {
namespace {

using Clock = std::chrono::steady_clock;

// A tile of 16 rows of 1024 against 8 vectors: 96 KiB in all, which a second-level cache holds.
constexpr int64_t kRows = 16;
constexpr int64_t kTokens = 8;
constexpr int64_t kWidth = 1024;
constexpr double kTileOperations = 2.0 * kRows * kTokens * kWidth;
constexpr int kRepeats = 5;         // of which the median counts
constexpr int64_t kPieces = 8;      // for each thread, so that one which is late delays little
constexpr int64_t kDecoded = 8192;  // elements; 32 KiB of fp32
constexpr std::byte kNormal{0x3c};  // two of them are 1.06 in fp16: no scale is a NaN or denormal

struct Tile {
  std::vector<float> w = std::vector<float>(kRows * kWidth, 0.5f);
  std::vector<float> x = std::vector<float>(kTokens * kWidth, 0.25f);
  std::vector<float> out = std::vector<float>(kRows * kTokens);

  void multiply(const ops::Kernels& kernels, int64_t times) {
    for (int64_t i = 0; i < times; ++i) {
      kernels.dot_tile(w.data(), kWidth, kRows, x.data(), kWidth, kTokens, kWidth, out.data(),
                       kRows);
    }
  }
};

double seconds_since(Clock::time_point begin) {
  return std::max(std::chrono::duration<double>(Clock::now() - begin).count(), 1e-9);
}

// Calls that take about `seconds`: doubled until they take a tenth of it.
template <class Call>
int64_t calls_in(double seconds, const Call& call) {
  for (int64_t calls = 1;; calls *= 2) {
    const auto begin = Clock::now();
    call(calls);
    const double spent = seconds_since(begin);
    if (spent < seconds / 10) continue;
    return std::max<int64_t>(1, std::llround(static_cast<double>(calls) * seconds / spent));
  }
}

template <class Body>
double median_seconds(const Body& body) {
  std::vector<double> seconds;
  for (int i = 0; i < kRepeats; ++i) {
    const auto begin = Clock::now();
    body();
    seconds.push_back(seconds_since(begin));
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[kRepeats / 2];
}

uint64_t rate(double work, double seconds) { return static_cast<uint64_t>(work / seconds); }

}  // namespace

ProductRates measure_products(const ops::Kernels& kernels, int threads, double seconds) {
  ThreadPool pool(threads);
  std::vector<Tile> tiles(static_cast<size_t>(pool.threads()));
  const int64_t calls =
      calls_in(seconds / kRepeats, [&](int64_t n) { tiles[0].multiply(kernels, n); });
  ProductRates rates{.kernels = kernels.name, .threads = pool.threads()};
  const double alone = median_seconds([&] { tiles[0].multiply(kernels, calls); });
  rates.one_thread = rate(kTileOperations * static_cast<double>(calls), alone);
  const int64_t each = std::max<int64_t>(1, calls / kPieces);
  const int64_t pieces = kPieces * pool.threads();
  const double together = median_seconds([&] {
    pool.parallel_for(pieces, [&](int64_t, int thread) {
      tiles[static_cast<size_t>(thread)].multiply(kernels, each);
    });
  });
  rates.all_threads = rate(kTileOperations * static_cast<double>(each * pieces), together);
  return rates;
}

std::vector<DecodeRate> measure_decoding(const ops::Kernels& kernels, double seconds) {
  using tensor::DType;
  std::vector<DecodeRate> rates;
  std::vector<float> out(kDecoded);
  for (const DType type : {DType::kBF16, DType::kQ8_0, DType::kQ6_K, DType::kQ5_K, DType::kQ4_K}) {
    const uint64_t bytes = tensor::row_bytes(type, kDecoded);
    const std::vector<std::byte> blocks(bytes, kNormal);
    const auto decode = [&](int64_t times) {
      for (int64_t i = 0; i < times; ++i) {
        kernels.decode_row(type, blocks.data(), kDecoded, out.data());
      }
    };
    const int64_t calls = calls_in(seconds / kRepeats, decode);
    const double spent = median_seconds([&] { decode(calls); });
    rates.push_back(
        {.kernels = kernels.name,
         .type = std::string(tensor::dtype_name(type)),
         .bytes_per_second = rate(static_cast<double>(bytes) * static_cast<double>(calls), spent)});
  }
  return rates;
}

std::vector<KernelSet> find_kernel_sets() {
  const std::vector<std::string> here = device::feature_names(device::cpu_features());
  std::vector<KernelSet> sets;
  for (const std::string_view name : ops::built_kernels()) {
    KernelSet set{.name = std::string(name), .runs = ops::find_kernels(name) != nullptr};
    std::vector<std::string> needed;
    if (name == "avx2" || name == "avx512") needed = {"avx2", "fma"};
    if (name == "avx512") needed.insert(needed.end(), {"avx512f", "avx512bw", "avx512vl"});
    for (std::string& each : needed) {
      const bool offered = std::find(here.begin(), here.end(), each) != here.end();
      if (!offered) set.missing.push_back(std::move(each));
    }
    sets.push_back(std::move(set));
  }
  return sets;
}

}  // namespace topknot::doctor
