#include "bench/attention_bench.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "attention/registry.h"
#include "base/assert.h"
#include "base/checked_math.h"
#include "base/strings.h"
#include "base/try.h"
#include "bench/cuda/random.h"
#include "bench/timing.h"
#include "capability/device_facts.h"
#include "device/cuda/cuda_error.h"
#include "device/cuda/gpu.h"
#include "tensor/dequantize.h"

namespace topknot::bench {
namespace {

using attention::Selection;
using capability::Fact;
using capability::Facts;
using device::DeviceBuffer;
using kvcache::kPageTokens;
using kvcache::KvFormat;

constexpr int64_t kRank = 512;
constexpr int64_t kRope = 64;
constexpr int64_t kWidth = kRank + kRope;
constexpr int64_t kBf16Bytes = 2;
constexpr int64_t kPoolSlots = int64_t{1} << 21;  // 2.4 GB of bf16 rows
// The input sets of a graph together read more than this, several times the largest L2 cache, so
// that no call finds the rows of the one before.
constexpr int64_t kColdBytes = 200'000'000;
constexpr int kMostSets = 48;
const float kScale = 1 / std::sqrt(256.0f);  // qk_nope_head_dim 192 + qk_rope_head_dim 64

// ||out - ref|| / ||ref|| of bf16 products with fp32 sums: an output is a mean of rows, the weights
// and the result are rounded to bf16 (2^-9 each, of random sign). Rows of 8 bits are compared with
// what they decode to, and may be rounded to bf16 once more.
double error_limit(KvFormat format) { return format == KvFormat::kBf16 ? 2.5e-3 : 5e-3; }

// The inputs and outputs of one call.
struct Set {
  DeviceBuffer q, slots, block_table, requests, visible, out, lse;
  std::vector<int32_t> host_slots;  // sparse: [tokens, topk]; dense: [tokens, visible]
  int64_t max_pages = 0;
};

class Bench {
 public:
  Bench(device::CudaDevice gpu, device::Stream stream)
      : gpu_(std::move(gpu)), stream_(std::move(stream)), random_(20260701) {}

  const device::CudaDevice& gpu() const { return gpu_; }

  Result<Row> run(const AttentionCase& c, const attention::Backend& backend) {
    TOPKNOT_CHECK_OK(make_pool(c.format));
    TOPKNOT_TRY(const auto attention,
                backend.create({c.heads, kRank, kRope}, {.cuda_device = gpu_.index}));
    TOPKNOT_CHECK_OK(attention->plan({c.selection, c.tokens, c.topk, c.context}));
    const int64_t read = keys_of(c) * c.tokens * pool_rows_.row_bytes;
    const auto sets =
        static_cast<int>(c.prefill ? 1 : std::clamp<int64_t>(kColdBytes / read + 1, 2, kMostSets));
    std::vector<Set> inputs;
    for (int i = 0; i < sets; ++i) {
      TOPKNOT_TRY(Set set, make_set(c, i));
      inputs.push_back(std::move(set));
    }
    const auto call = [&](int i) {
      return attention->run(arguments(c, inputs[static_cast<size_t>(i)]));
    };
    TOPKNOT_CHECK_OK(device::fill(inputs[0].out.data(), 0xFF, inputs[0].out.bytes(), stream_));
    TOPKNOT_CHECK_OK(call(0));
    Row row = describe(c, backend);
    TOPKNOT_TRY(row.error, error(c, inputs[0]));
    TOPKNOT_TRY(row.us, median_us(stream_, sets, call, c.prefill ? 5 : kReplays));
    return row;
  }

 private:
  static int64_t keys_of(const AttentionCase& c) {
    return c.selection == Selection::kSparse ? c.topk : c.context;
  }

  static Row describe(const AttentionCase& c, const attention::Backend& backend) {
    Row row{.name = std::string(backend.name), .format = std::string(kv_format_name(c.format))};
    row.shape = {{"heads", c.heads}, {"tokens", c.tokens}, {"context", c.context}};
    if (c.selection == Selection::kSparse) row.shape.push_back({"topk", c.topk});
    const auto real = [](int64_t n) { return static_cast<double>(n); };
    const int64_t row_bytes = kvcache::row_bytes(c.format, kWidth, kRope);
    // A prefill's tokens share their rows: each is read once at the least.
    const int64_t rows = c.prefill ? c.context : c.tokens * keys_of(c);
    row.bytes = real(rows * row_bytes + c.tokens * c.heads * (kWidth + kRank) * kBf16Bytes);
    row.flops = 2 * real(c.tokens * c.heads) * real(keys_of(c)) * real(kWidth + kRank);
    row.error_limit = error_limit(c.format);
    return row;
  }

  Status status(cudaError_t error) const {
    return device::cuda_status(error, gpu_.index, "cannot make the inputs of a benchmark");
  }
  cudaStream_t handle() const { return static_cast<cudaStream_t>(stream_.get()); }

  // Rows of one format, kept for the cases that follow.
  Status make_pool(KvFormat format) {
    if (pool_rows_.data != nullptr && pool_rows_.format == format) return {};
    const int64_t bytes = kvcache::row_bytes(format, kWidth, kRope);
    pool_ = DeviceBuffer();
    TOPKNOT_TRY(pool_, DeviceBuffer::allocate(gpu_.index, static_cast<size_t>(kPoolSlots * bytes),
                                              "latent rows"));
    pool_rows_ = {format, pool_.as<std::byte>(), kWidth, bytes, kPoolSlots, kRope};
    switch (format) {
      case KvFormat::kBf16:
        return status(launch_random_bf16(pool_.data(), kPoolSlots * kWidth, 7, handle()));
      case KvFormat::kFp8Ds:
        return status(launch_random_fp8_ds_rows(pool_.data(), kPoolSlots, 7, handle()));
      case KvFormat::kQ8_0:
        return status(
            launch_random_q8_0_blocks(pool_.data(), kPoolSlots * kWidth / 32, 7, handle()));
      default: break;
    }
    return Error{.code = Code::kUnsupported, .what = "no benchmark has rows of this format"};
  }

  template <class T>
  Result<DeviceBuffer> upload(const std::vector<T>& values, std::string_view purpose) {
    const size_t bytes = values.size() * sizeof(T);
    TOPKNOT_TRY(DeviceBuffer buffer, DeviceBuffer::allocate(gpu_.index, bytes, purpose));
    TOPKNOT_CHECK_OK(device::copy_to_device(buffer.data(), values.data(), bytes, stream_));
    return buffer;
  }

  Result<Set> make_set(const AttentionCase& c, int index) {
    Set set;
    const auto allocate = [&](int64_t bytes, std::string_view purpose) {
      return DeviceBuffer::allocate(gpu_.index, static_cast<size_t>(bytes), purpose);
    };
    TOPKNOT_TRY(set.q, allocate(c.tokens * c.heads * kWidth * kBf16Bytes, "queries"));
    TOPKNOT_TRY(set.out, allocate(c.tokens * c.heads * kRank * kBf16Bytes, "outputs"));
    TOPKNOT_TRY(set.lse, allocate(c.tokens * c.heads * 4, "lse"));
    TOPKNOT_CHECK_OK(status(launch_random_bf16(set.q.data(), c.tokens * c.heads * kWidth,
                                               static_cast<uint32_t>(100 + index), handle())));
    TOPKNOT_CHECK_OK(c.selection == Selection::kSparse ? draw_slots(c, index, &set)
                                                       : draw_pages(c, index, &set));
    return set;
  }

  // Distinct random slots of the request's own region; in a prefill only of keys before the token.
  Status draw_slots(const AttentionCase& c, int index, Set* set) {
    std::vector<int32_t> order;
    set->host_slots.reserve(static_cast<size_t>(c.tokens * c.topk));
    for (int64_t t = 0; t < c.tokens; ++t) {
      const int64_t visible = c.prefill ? c.context - c.tokens + t + 1 : c.context;
      const int64_t request = c.prefill ? 0 : index * c.tokens + t;
      const int64_t region = request % (kPoolSlots / c.context) * c.context;
      for (auto next = static_cast<int32_t>(order.size()); next < visible; ++next) {
        order.push_back(next);
      }
      for (int64_t k = 0; k < c.topk; ++k) {
        if (k >= visible) {
          set->host_slots.push_back(-1);
          continue;
        }
        const auto other = k + static_cast<int64_t>(random_() % static_cast<uint64_t>(visible - k));
        std::swap(order[static_cast<size_t>(k)], order[static_cast<size_t>(other)]);
        set->host_slots.push_back(static_cast<int32_t>(region) + order[static_cast<size_t>(k)]);
      }
    }
    TOPKNOT_TRY(set->slots, upload(set->host_slots, "slots"));
    return {};
  }

  // Each request has pages of its own, in random order.
  Status draw_pages(const AttentionCase& c, int index, Set* set) {
    const int64_t requests = c.prefill ? 1 : c.tokens;
    set->max_pages = ceil_div<int64_t>(c.context, kPageTokens);
    std::vector<int32_t> table, request_of, visible;
    for (int64_t r = 0; r < requests; ++r) {
      const int64_t region = (index * requests + r) % (kPoolSlots / c.context) * set->max_pages;
      std::vector<int32_t> pages(static_cast<size_t>(set->max_pages));
      std::iota(pages.begin(), pages.end(), static_cast<int32_t>(region));
      std::shuffle(pages.begin(), pages.end(), random_);
      table.insert(table.end(), pages.begin(), pages.end());
    }
    for (int64_t t = 0; t < c.tokens; ++t) {
      request_of.push_back(static_cast<int32_t>(c.prefill ? 0 : t));
      visible.push_back(static_cast<int32_t>(c.prefill ? c.context - c.tokens + t + 1 : c.context));
      for (int64_t p = 0; p < c.context; ++p) {
        const int64_t page =
            table[static_cast<size_t>(request_of.back() * set->max_pages + p / kPageTokens)];
        if (c.prefill) continue;
        set->host_slots.push_back(static_cast<int32_t>(page * kPageTokens + p % kPageTokens));
      }
    }
    TOPKNOT_TRY(set->block_table, upload(table, "block table"));
    TOPKNOT_TRY(set->requests, upload(request_of, "requests"));
    TOPKNOT_TRY(set->visible, upload(visible, "visible"));
    return {};
  }

  attention::MlaArgs arguments(const AttentionCase& c, const Set& set) const {
    attention::MlaArgs args;
    args.q = set.q.data();
    args.kv = pool_rows_;
    args.selection = c.selection;
    args.sparse = {set.slots.as<int32_t>(), c.topk};
    args.dense = {set.block_table.as<int32_t>(), set.max_pages, set.requests.as<int32_t>(),
                  set.visible.as<int32_t>()};
    args.tokens = c.tokens;
    args.sm_scale = kScale;
    args.out = set.out.data();
    args.lse = set.lse.as<float>();
    args.stream = stream_.get();
    return args;
  }

  // Over three tokens and three heads; infinite where an lse is wrong.
  Result<double> error(const AttentionCase& c, const Set& set) {
    double difference = 0, norm = 0;
    for (const int64_t token : {int64_t{0}, c.tokens / 2, c.tokens - 1}) {
      TOPKNOT_TRY(const std::vector<float> rows, read_rows(c, set, token));
      for (const int64_t head : {int64_t{0}, c.heads / 2, c.heads - 1}) {
        const int64_t at = token * c.heads + head;
        TOPKNOT_TRY(const std::vector<float> q, read_bf16(set.q, at * kWidth, kWidth));
        TOPKNOT_TRY(const std::vector<float> out, read_bf16(set.out, at * kRank, kRank));
        float lse = 0;
        TOPKNOT_CHECK_OK(device::copy_to_host(&lse, set.lse.as<float>() + at, 4, stream_));
        std::vector<double> want(kRank);
        const double want_lse = reference(q, rows, &want);
        // Scores are of order 1; products of bf16 are exact in fp32, so only sums are rounded.
        if (!(std::abs(want_lse - static_cast<double>(lse)) < 1e-3 * (1 + std::abs(want_lse)))) {
          return std::numeric_limits<double>::infinity();
        }
        for (size_t i = 0; i < want.size(); ++i) {
          const double d = static_cast<double>(out[i]) - want[i];
          difference += d * d;
          norm += want[i] * want[i];
        }
      }
    }
    const double relative = std::sqrt(difference / norm);
    return std::isnan(relative) ? std::numeric_limits<double>::infinity() : relative;
  }

  Result<std::vector<float>> read_bf16(const DeviceBuffer& from, int64_t at, int64_t count) {
    std::vector<uint16_t> bits(static_cast<size_t>(count));
    TOPKNOT_CHECK_OK(
        device::copy_to_host(bits.data(), from.as<uint16_t>() + at, bits.size() * 2, stream_));
    std::vector<float> values;
    for (const uint16_t each : bits) values.push_back(tensor::bf16_to_f32(each));
    return values;
  }

  Result<std::vector<float>> read_rows(const AttentionCase& c, const Set& set, int64_t token) {
    const int64_t keys = keys_of(c);
    std::vector<std::byte> bytes(static_cast<size_t>(pool_rows_.row_bytes));
    kvcache::CacheRows one = pool_rows_;
    one.data = bytes.data();
    one.slots = 1;
    std::vector<float> rows;
    for (int64_t k = 0; k < keys; ++k) {
      const int32_t slot = set.host_slots[static_cast<size_t>(token * keys + k)];
      if (slot < 0) continue;
      TOPKNOT_CHECK_OK(
          device::copy_to_host(bytes.data(), pool_rows_.row(slot), bytes.size(), stream_));
      rows.resize(rows.size() + kWidth);
      kvcache::read_row(one, 0, rows.data() + rows.size() - kWidth);
    }
    return rows;
  }

  // The definition, in double. Returns the lse.
  static double reference(const std::vector<float>& q, const std::vector<float>& rows,
                          std::vector<double>* out) {
    const size_t count = rows.size() / kWidth;
    std::vector<double> scores(count);
    for (size_t j = 0; j < count; ++j) {
      for (size_t i = 0; i < kWidth; ++i) {
        scores[j] += static_cast<double>(q[i]) * static_cast<double>(rows[j * kWidth + i]);
      }
      scores[j] *= static_cast<double>(kScale);
    }
    const double largest = *std::max_element(scores.begin(), scores.end());
    double total = 0;
    for (size_t j = 0; j < count; ++j) {
      const double weight = std::exp(scores[j] - largest);
      total += weight;
      for (size_t i = 0; i < kRank; ++i) {
        (*out)[i] += weight * static_cast<double>(rows[j * kWidth + i]);
      }
    }
    for (double& value : *out) value /= total;
    return largest + std::log(total);
  }

  device::CudaDevice gpu_;
  device::Stream stream_;
  std::mt19937_64 random_;
  DeviceBuffer pool_;
  kvcache::CacheRows pool_rows_;
};

Facts asked(const device::CudaDevice& gpu, const AttentionCase& c) {
  return Facts()
      .set(Fact::kDevice, capability::DeviceKind::kCuda)
      .set(Fact::kSm, gpu.sm)
      .set(Fact::kSmemPerBlock, gpu.shared_memory_per_block)
      .set(Fact::kSelection, c.selection)
      .set(Fact::kHeads, c.heads)
      .set(Fact::kKvLoraRank, kRank)
      .set(Fact::kQkRopeHeadDim, kRope)
      .set(Fact::kTopk, c.topk)
      .set(Fact::kKvFormat, c.format)
      .set(Fact::kPageTokens, kPageTokens)
      .set(Fact::kDtype, capability::ActivationType::kBf16);
}

}  // namespace

std::vector<AttentionCase> attention_cases(bool quick) {
  constexpr int64_t kContext = 16384, kTopk = 2048, kLong = 32768, kPrompt = 4096;
  std::vector<AttentionCase> cases;
  const auto decode = [&](KvFormat format, int64_t heads, int64_t tokens) {
    cases.push_back({Selection::kSparse, format, heads, tokens, kContext, kTopk, false});
  };
  const auto prefill = [&](int64_t heads) {
    cases.push_back({Selection::kSparse, KvFormat::kBf16, heads, kPrompt, kLong, kTopk, true});
  };
  const auto dense = [&](int64_t heads, int64_t tokens) {
    cases.push_back({Selection::kDense, KvFormat::kBf16, heads, tokens, kLong, 0, false});
  };
  if (quick) {
    decode(KvFormat::kBf16, 8, 1);
    decode(KvFormat::kBf16, 64, 64);
    decode(KvFormat::kFp8Ds, 8, 64);
    prefill(64);
    dense(8, 8);
    return cases;
  }
  for (const int64_t heads : {8, 16, 64, 128}) {
    for (const int64_t tokens : {1, 4, 16, 64, 128}) decode(KvFormat::kBf16, heads, tokens);
  }
  for (const KvFormat format : {KvFormat::kFp8Ds, KvFormat::kQ8_0}) {
    for (const int64_t heads : {8, 64}) {
      for (const int64_t tokens : {1, 64, 128}) decode(format, heads, tokens);
    }
  }
  for (const int64_t heads : {8, 64, 128}) prefill(heads);
  for (const int64_t heads : {8, 64}) {
    for (const int64_t tokens : {1, 8, 32}) dense(heads, tokens);
  }
  return cases;
}

Result<std::vector<Row>> bench_attention(int cuda_device, std::span<const AttentionCase> cases,
                                         std::string_view backend,
                                         const std::function<void(size_t)>& done) {
  TOPKNOT_TRY(device::CudaDevice gpu, find_gpu(cuda_device));
  TOPKNOT_TRY(device::Stream stream, device::Stream::create(cuda_device));
  Bench bench(std::move(gpu), std::move(stream));
  std::vector<Row> rows;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Facts facts = asked(bench.gpu(), cases[i]);
    for (const attention::RegistryEntry& entry : attention::registry()) {
      if (entry.backend == nullptr || (!backend.empty() && entry.name != backend)) continue;
      if (!capability::refusals(entry.backend->rules, facts).empty()) continue;
      TOPKNOT_TRY(Row row, bench.run(cases[i], *entry.backend));
      rows.push_back(std::move(row));
    }
    if (done) done(i + 1);
  }
  return rows;
}

}  // namespace topknot::bench
