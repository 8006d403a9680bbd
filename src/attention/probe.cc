#include "attention/probe.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "attention/registry.h"
#include "attention/run_once.h"
#include "base/assert.h"
#include "base/strings.h"
#include "capability/device_facts.h"
#include "device/machine.h"
#include "tensor/dequantize.h"

namespace topknot::attention {
namespace {

using namespace capability;
using kvcache::kPageTokens;

constexpr MlaShape kShape = {.heads = 4, .kv_lora_rank = 512, .qk_rope_head_dim = 64};
constexpr int64_t kTokens = 3;
constexpr int64_t kTopk = 64;
constexpr int64_t kContext = 130;  // two pages and a bit
constexpr uint32_t kSeed = 20260701;

// Rows have elements of order 1, so outputs, which are means of rows, are below 8. A score sums 576
// products of relative error 2^-24 each; scores are of order 1 after scaling, an error there is a
// relative error of a weight, and 130 weights are summed. 576 * 2^-24 * 8 is 2.7e-4; errors of
// random sign stay far below, and a wrong row, scale or mask changes outputs by 0.1 and more.
constexpr double kLimit = 3e-4;
// A GPU rounds weights and outputs to bf16, 2^-9 each; no element of these rows exceeds 5.
constexpr double kBf16Limit = 2 * 0x1p-9 * 5;

struct Tile {
  kvcache::Cache cache;
  std::vector<float> q;
  std::vector<int32_t> slots;        // [kTokens, kTopk]
  std::vector<int32_t> block_table;  // one request
  std::vector<int32_t> requests, visible;
};

Tile make_tile() {
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal;
  auto made =
      kvcache::Cache::create({KvFormat::kBf16, kShape.width(), 0, {false}}, kContext + kPageTokens);
  TOPKNOT_ASSERT(made.has_value());  // 300 KiB
  Tile tile{.cache = std::move(*made)};
  const auto rows = tile.cache.latent_rows(0);
  std::vector<float> row(static_cast<size_t>(kShape.width()), NAN);
  for (int64_t slot = 0; slot < rows.slots; ++slot) kvcache::write_row(rows, slot, row.data());
  // Pages in reverse, so that a position is never its own slot.
  for (int64_t page = rows.slots / kPageTokens; page-- > 0;) {
    tile.block_table.push_back(static_cast<int32_t>(page));
  }
  const auto slot_of = [&](int64_t position) {
    return tile.block_table[static_cast<size_t>(position / kPageTokens)] * kPageTokens +
           static_cast<int32_t>(position % kPageTokens);
  };
  for (int64_t position = 0; position < kContext; ++position) {
    for (float& value : row) value = normal(random);
    kvcache::write_row(rows, slot_of(position), row.data());
  }
  for (int64_t i = 0; i < kTokens * kShape.heads * kShape.width(); ++i) {
    // Rounded, so that the reference is asked what a GPU is asked.
    tile.q.push_back(tensor::bf16_to_f32(tensor::f32_to_bf16(normal(random))));
  }
  for (int64_t token = 0; token < kTokens; ++token) {
    tile.requests.push_back(0);
    tile.visible.push_back(static_cast<int32_t>(kContext - 40 * token));
    for (int64_t k = 0; k < kTopk; ++k) {  // every other position, with holes
      tile.slots.push_back(k % 5 == 4 ? -1 : slot_of(kContext - 1 - token - 2 * k));
    }
  }
  return tile;
}

HostProblem problem_of(const Tile& tile, Selection selection) {
  HostProblem problem{.shape = kShape, .requests = 1};
  MlaArgs& args = problem.args;
  args.q = tile.q.data();
  args.kv = tile.cache.latent_rows(0);
  args.selection = selection;
  args.sparse = {tile.slots.data(), kTopk};
  args.dense = {tile.block_table.data(), static_cast<int64_t>(tile.block_table.size()),
                tile.requests.data(), tile.visible.data()};
  args.tokens = kTokens;
  args.sm_scale = 1 / std::sqrt(static_cast<float>(kShape.width()));
  return problem;
}

double largest_difference(const std::vector<float>& got, const std::vector<float>& want) {
  double largest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double difference = std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i]));
    // A comparison with NaN is false: it must not look like the smallest difference.
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, difference);
  }
  return largest;
}

Facts facts_of(const Facts& device, Selection selection) {
  return Facts(device)
      .set(Fact::kSelection, selection)
      .set(Fact::kHeads, kShape.heads)
      .set(Fact::kKvLoraRank, kShape.kv_lora_rank)
      .set(Fact::kQkRopeHeadDim, kShape.qk_rope_head_dim)
      .set(Fact::kTopk, kTopk)
      .set(Fact::kKvFormat, KvFormat::kBf16)
      .set(Fact::kPageTokens, kPageTokens);
}

// Compares one call with the reference's, which runs on the host.
void compare(const Backend& backend, Selection selection, const Resources& resources,
             ProbeResult* result) {
  const Facts host = Facts().set(Fact::kDevice, DeviceKind::kCpu);
  const Backend& reference =
      chosen_backend(select_backend(facts_of(host, selection), "cpu_reference"));
  const Tile tile = make_tile();
  const HostProblem problem = problem_of(tile, selection);
  const Result<HostAnswer> got = run_once(backend, problem, resources);
  if (!got) {
    result->problem = got.error().to_string();
    return;
  }
  ThreadPool alone(1);
  const ops::Kernels* kernels =
      resources.kernels != nullptr ? resources.kernels : ops::available_kernels().front();
  const Result<HostAnswer> want = run_once(reference, problem, {&alone, kernels});
  TOPKNOT_ASSERT(want.has_value());  // it has no way to fail
  result->largest_difference =
      std::max(largest_difference(got->out, want->out), largest_difference(got->lse, want->lse));
}

}  // namespace

std::vector<ProbeResult> probe_backend(const Backend& backend, const Resources& resources,
                                       const Facts& device) {
  std::vector<ProbeResult> results;
  const bool rounds = backend.activations == ActivationType::kBf16;
  for (const Selection selection : {Selection::kSparse, Selection::kDense}) {
    ProbeResult result{.backend = std::string(backend.name),
                       .kernels = resources.kernels != nullptr
                                      ? std::string(resources.kernels->name)
                                      : cat("sm_", device[Fact::kSm].value_or(0)),
                       .selection = selection == Selection::kSparse ? "sparse" : "dense",
                       .limit = rounds ? kBf16Limit : kLimit};
    for (const Refusal& refusal : refusals(backend.rules, facts_of(device, selection))) {
      result.refusals.push_back(cat(refusal.what, ": needs ", refusal.needed, ", found ",
                                    refusal.found, ": ", refusal.because));
    }
    if (result.refusals.empty()) compare(backend, selection, resources, &result);
    results.push_back(std::move(result));
  }
  return results;
}

std::vector<ProbeResult> probe_registry(ThreadPool* pool) {
  std::vector<ProbeResult> results;
  const auto add = [&](const Backend& backend, const Resources& resources, const Facts& device) {
    auto found = probe_backend(backend, resources, device);
    std::move(found.begin(), found.end(), std::back_inserter(results));
  };
  const Facts host = Facts().set(Fact::kDevice, DeviceKind::kCpu);
  const device::Machine machine = device::this_machine();
  for (const RegistryEntry& entry : registry()) {
    if (entry.backend == nullptr) continue;
    if (device_kind(*entry.backend) == DeviceKind::kCpu) {
      for (const ops::Kernels* kernels : ops::available_kernels()) {
        add(*entry.backend, {pool, kernels}, host);
      }
      continue;
    }
    for (size_t gpu = 0; gpu < machine.devices.size(); ++gpu) {  // GPUs come first, by index
      if (machine.devices[gpu].kind != DeviceKind::kCuda) continue;
      add(*entry.backend, {.cuda_device = static_cast<int>(gpu)},
          device_facts(machine.devices[gpu]));
    }
  }
  return results;
}

}  // namespace topknot::attention
