// Every backend of the registry against cpu_reference over random problems. A new backend is tested
// with no new test. Rows that no token selects hold NaN; empty entries hold -1; the backend runs
// before the reference, so that stale memory cannot pass.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "attention/registry.h"
#include "attention/run_once.h"
#include "capability/device_facts.h"
#include "device/machine.h"
#include "tensor/dequantize.h"

namespace topknot::attention {
namespace {

using namespace capability;
using kvcache::kPageTokens;

struct Shape {
  int64_t heads, rank, rope, topk, tokens, context;
};

struct Problem {
  Shape shape;
  KvFormat format;
  std::unique_ptr<kvcache::Cache> cache;
  std::vector<float> q;
  std::vector<int32_t> slots;        // [tokens, topk]
  std::vector<int32_t> block_table;  // one request
  std::vector<int32_t> requests, visible;
  float scale = 0;
  double largest_key = 0;
  double largest_element = 0;

  Facts facts(Selection selection, const Facts& device) const {
    return Facts(device)
        .set(Fact::kSelection, selection)
        .set(Fact::kHeads, shape.heads)
        .set(Fact::kKvLoraRank, shape.rank)
        .set(Fact::kQkRopeHeadDim, shape.rope)
        .set(Fact::kTopk, shape.topk)
        .set(Fact::kKvFormat, format)
        .set(Fact::kPageTokens, kPageTokens);
  }
  // What `backend` answers, in host memory.
  HostAnswer run(const Backend& backend, Selection selection, const Resources& resources) const {
    auto answer = run_once(backend, problem(selection), resources);
    EXPECT_TRUE(answer) << answer.error().to_string();
    return answer ? std::move(*answer) : HostAnswer();
  }
  HostProblem problem(Selection selection) const {
    HostProblem host{.shape = {shape.heads, shape.rank, shape.rope}, .requests = 1};
    MlaArgs& a = host.args;
    a.q = q.data();
    a.kv = cache->latent_rows(0);
    a.selection = selection;
    a.sparse = {slots.data(), shape.topk};
    a.dense = {block_table.data(), static_cast<int64_t>(block_table.size()), requests.data(),
               visible.data()};
    a.tokens = shape.tokens;
    a.sm_scale = scale;
    return host;
  }
};

Problem make_problem(const Shape& shape, KvFormat format, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Problem p;
  p.shape = shape;
  p.format = format;
  const int64_t width = shape.rank + shape.rope;
  p.scale = 1.0f / std::sqrt(static_cast<float>(width) / 2);
  auto cache = kvcache::Cache::create({format, width, 0, {false}, shape.rope},
                                      shape.context + 3 * kPageTokens);
  EXPECT_TRUE(cache);
  p.cache = std::make_unique<kvcache::Cache>(std::move(*cache));
  const auto rows = p.cache->latent_rows(0);
  std::vector<float> row(static_cast<size_t>(width), NAN);
  for (int64_t slot = 0; slot < rows.slots; ++slot) kvcache::write_row(rows, slot, row.data());
  const int64_t pages = rows.slots / kPageTokens;
  for (int32_t i = 0; i < pages; ++i) p.block_table.push_back(i);
  std::shuffle(p.block_table.begin(), p.block_table.end(), random);
  const auto slot_of = [&](int64_t position) {
    return p.block_table[static_cast<size_t>(position / kPageTokens)] * kPageTokens +
           static_cast<int32_t>(position % kPageTokens);
  };
  for (int64_t j = 0; j < shape.context; ++j) {
    double square = 0;
    for (float& value : row) {
      value = normal(random);
      square += static_cast<double>(value) * static_cast<double>(value);
      p.largest_element = std::max(p.largest_element, std::abs(static_cast<double>(value)));
    }
    p.largest_key = std::max(p.largest_key, std::sqrt(square));
    kvcache::write_row(rows, slot_of(j), row.data());
  }
  for (int64_t i = 0; i < shape.tokens * shape.heads * width; ++i) {
    p.q.push_back(tensor::bf16_to_f32(tensor::f32_to_bf16(normal(random))));  // a GPU's exactly
  }
  std::vector<int32_t> positions(static_cast<size_t>(shape.context));
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<int32_t>(i);
  for (int64_t t = 0; t < shape.tokens; ++t) {
    p.requests.push_back(0);
    p.visible.push_back(static_cast<int32_t>(t == 0 ? 0 : random() % (shape.context + 1)));
    std::shuffle(positions.begin(), positions.end(), random);
    // Token 0 selects nothing, token 1 everything it may, others have holes anywhere.
    for (int64_t k = 0; k < shape.topk; ++k) {
      const bool none = t == 0 || k >= shape.context || (t > 1 && random() % 3 == 0);
      p.slots.push_back(none ? -1 : slot_of(positions[static_cast<size_t>(k)]));
    }
  }
  return p;
}

// fp32 error of a backend against the double reference. A score is a sum of D products: at most
// (D/16 + 4) roundings of |q||k| * scale, and exp turns an absolute score error e into a relative
// error e of a weight; weights and rows are summed over K rows in fp32. Rows are of order 1, out is
// a mean of them.
double host_tolerance(const Problem& p) {
  const double width = static_cast<double>(p.shape.rank + p.shape.rope);
  const double q_norm = std::sqrt(width) * 1.5;
  const double score_error = (width / 16 + 4) * 0x1p-24 * q_norm * p.largest_key *
                             static_cast<double>(p.scale) / std::sqrt(width) * 4;
  const double sum_error = (static_cast<double>(p.shape.topk) / 8 + 8) * 0x1p-24;
  return 4 * (2 * score_error + sum_error);
}

// A GPU rounds weights and outputs to bf16, and with them decoded rows of 8 bits: 2^-9 each, of
// numbers up to the largest element of a row. A score's error is that of a row's, of random sign
// over its columns: 2^-9 * |q||k| / sqrt(D) * scale at most in the mean, four times that surely.
double tolerance(const Problem& p, const Backend& backend) {
  if (device_kind(backend) == DeviceKind::kCpu) return host_tolerance(p);
  const double width = static_cast<double>(p.shape.rank + p.shape.rope);
  const double row_rounding = p.format == KvFormat::kBf16 ? 0 : 0x1p-9;
  const double score_error = 4 * row_rounding * 1.5 * p.largest_key * static_cast<double>(p.scale);
  return (2 * 0x1p-9 + row_rounding + score_error) * std::min(p.largest_element, width);
}

void expect_near(const Problem& p, const std::vector<float>& got, const std::vector<float>& want,
                 double limit, const std::string& what) {
  size_t worst = 0;
  double largest = -1;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isinf(want[i])) {
      ASSERT_EQ(got[i], want[i]) << what << " at " << i;
      continue;
    }
    const double difference = std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i]));
    ASSERT_FALSE(std::isnan(got[i])) << what << " read a row that was not selected, at " << i;
    if (difference > largest) {
      largest = difference;
      worst = i;
    }
  }
  EXPECT_LE(largest, limit) << what << ": worst at " << worst << ": " << got[worst] << " vs "
                            << want[worst] << "; heads " << p.shape.heads << " topk "
                            << p.shape.topk;
}

// The same problem with its rows as f32: what the bytes of a format mean is not a question to a
// kernel here.
Problem decoded(const Problem& p) {
  Problem d;
  d.shape = p.shape;
  d.format = KvFormat::kF32;
  const auto rows = p.cache->latent_rows(0);
  auto cache = kvcache::Cache::create({KvFormat::kF32, rows.width, 0, {false}}, rows.slots);
  EXPECT_TRUE(cache);
  d.cache = std::make_unique<kvcache::Cache>(std::move(*cache));
  std::vector<float> row(static_cast<size_t>(rows.width));
  for (int64_t slot = 0; slot < rows.slots; ++slot) {
    kvcache::read_row(rows, slot, row.data());
    kvcache::write_row(d.cache->latent_rows(0), slot, row.data());
  }
  d.q = p.q;
  d.slots = p.slots;
  d.block_table = p.block_table;
  d.requests = p.requests;
  d.visible = p.visible;
  d.scale = p.scale;
  return d;
}

Facts host_facts() { return Facts().set(Fact::kDevice, DeviceKind::kCpu); }

constexpr Shape kShapes[] = {
    {1, 16, 0, 1, 3, 1},         {4, 512, 64, 256, 5, 700}, {3, 64, 16, 2, 6, 96},
    {64, 512, 64, 65, 4, 130},   {17, 48, 32, 33, 7, 64},   {128, 512, 0, 31, 3, 500},
    {8, 512, 64, 2048, 3, 2049}, {2, 40, 8, 1000, 4, 90},
};

// Where a backend is run: on the host with each instruction set, or on each GPU that is here.
struct Place {
  std::string name;
  Facts device;
  Resources resources;
};

std::vector<Place> places_of(const Backend& backend, ThreadPool* pool) {
  std::vector<Place> places;
  if (device_kind(backend) == DeviceKind::kCpu) {
    for (const ops::Kernels* kernels : ops::available_kernels()) {
      places.push_back({std::string(kernels->name), host_facts(), {pool, kernels}});
    }
    return places;
  }
  const device::Machine machine = device::this_machine();
  for (size_t i = 0; i < machine.devices.size(); ++i) {  // GPUs come first, by index
    if (machine.devices[i].kind != DeviceKind::kCuda) continue;
    places.push_back({"cuda:" + std::to_string(i),
                      device_facts(machine.devices[i]),
                      {.cuda_device = static_cast<int>(i)}});
  }
  return places;
}

// Which formats of rows a backend is asked for. A host row of f32 exists for the host's sake only.
std::vector<KvFormat> formats_of(const Backend& backend) {
  if (device_kind(backend) == DeviceKind::kCpu) return {KvFormat::kF32, KvFormat::kBf16};
  return {KvFormat::kBf16, KvFormat::kFp8Ds, KvFormat::kQ8_0};
}

HostAnswer reference(const Problem& p, Selection selection, ThreadPool* pool) {
  const Backend& backend =
      chosen_backend(select_backend(p.facts(selection, host_facts()), "cpu_reference"));
  return p.run(backend, selection, {pool, ops::available_kernels().front()});
}

void check(const RegistryEntry& entry, const Place& place, const Problem& p, Selection selection,
           ThreadPool* pool) {
  const HostAnswer got = p.run(*entry.backend, selection, place.resources);
  const HostAnswer want = reference(decoded(p), selection, pool);
  const double limit = tolerance(p, *entry.backend);
  expect_near(p, got.out, want.out, limit, "out");
  expect_near(p, got.lse, want.lse, limit * 4, "lse");
  for (int64_t i = 0; i < p.shape.heads; ++i) {
    EXPECT_EQ(got.lse[static_cast<size_t>(i)], -INFINITY) << "nothing was selected";
  }
}

void check_everywhere(const RegistryEntry& entry, DeviceKind kind) {
  ThreadPool pool(2);
  if (entry.backend == nullptr || device_kind(*entry.backend) != kind) return;
  for (const Place& place : places_of(*entry.backend, &pool)) {
    uint32_t seed = 100;
    for (const Shape& shape : kShapes) {
      for (const KvFormat format : formats_of(*entry.backend)) {
        if (format == KvFormat::kQ8_0 && (shape.rank + shape.rope) % 32 != 0) continue;
        const Problem p = make_problem(shape, format, ++seed);
        for (const Selection selection : {Selection::kSparse, Selection::kDense}) {
          if (!refusals(entry.backend->rules, p.facts(selection, place.device)).empty()) continue;
          SCOPED_TRACE(std::string(entry.name) + " " + place.name + " seed " +
                       std::to_string(seed));
          check(entry, place, p, selection, &pool);
        }
      }
    }
  }
}

TEST(AttentionConformance, EveryBackendAgreesWithTheReference) {
  for (const RegistryEntry& entry : registry()) check_everywhere(entry, DeviceKind::kCpu);
}

TEST(AttentionOnGpuConformance, EveryBackendAgreesWithTheReference) {
  if (const auto gpus = device::cuda_facts(); gpus.devices.empty()) {
    GTEST_SKIP() << "no GPU: " << gpus.problem;
  }
  for (const RegistryEntry& entry : registry()) check_everywhere(entry, DeviceKind::kCuda);
}

// T-2.3: with top-k >= length sparse equals dense; holes and their places change nothing.
TEST(AttentionConformance, SparseOverEveryPositionIsDenseBitForBit) {
  Problem p = make_problem({4, 512, 64, 330, 4, 330}, KvFormat::kBf16, 7);
  for (int64_t t = 0; t < p.shape.tokens; ++t) {
    p.visible[static_cast<size_t>(t)] = static_cast<int32_t>(100 + t * 73);
    int64_t k = 0;
    for (int64_t j = 0; j < p.shape.topk; ++j)
      p.slots[static_cast<size_t>(t * p.shape.topk + j)] = -1;
    for (int32_t j = 0; j < p.visible[static_cast<size_t>(t)]; ++j) {
      if (j % 90 == 0) ++k;  // a hole
      p.slots[static_cast<size_t>(t * p.shape.topk + k++)] =
          p.block_table[static_cast<size_t>(j / kPageTokens)] * kPageTokens + j % kPageTokens;
    }
  }
  ThreadPool pool(2);
  for (const RegistryEntry& entry : registry()) {
    if (entry.backend == nullptr) continue;
    const bool host = device_kind(*entry.backend) == DeviceKind::kCpu;
    for (const Place& place : places_of(*entry.backend, &pool)) {
      const HostAnswer sparse = p.run(*entry.backend, Selection::kSparse, place.resources);
      const HostAnswer dense = p.run(*entry.backend, Selection::kDense, place.resources);
      // On a GPU holes shift rows between tiles, and with them the order of sums.
      if (host) {
        EXPECT_EQ(sparse.out, dense.out) << entry.name;
      }
      expect_near(p, sparse.out, dense.out, tolerance(p, *entry.backend), "sparse against dense");
    }
  }
}

}  // namespace
}  // namespace topknot::attention
