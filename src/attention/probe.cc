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

constexpr int64_t kTokens = 4;       // the last one reads nothing
constexpr int64_t kQkNopeDim = 192;  // folded into q: only for those who ask
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
  MlaShape shape;
  kvcache::Cache cache;
  std::vector<float> q;
  std::vector<int32_t> slots;        // [kTokens, kTopk]
  std::vector<int32_t> block_table;  // one request
  std::vector<int32_t> requests, visible;
};

Tile make_tile(const ProbeTile& asked) {
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal;
  auto made = kvcache::Cache::create(
      {asked.format, asked.shape.width(), 0, {false}, asked.shape.qk_rope_head_dim},
      kContext + kPageTokens);
  TOPKNOT_ASSERT(made.has_value());  // at most 600 KiB
  Tile tile{.shape = asked.shape, .cache = std::move(*made)};
  const auto rows = tile.cache.latent_rows(0);
  std::vector<float> row(static_cast<size_t>(tile.shape.width()), NAN);
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
  for (int64_t i = 0; i < kTokens * tile.shape.heads * tile.shape.width(); ++i) {
    // Rounded, so that the reference is asked what a GPU is asked.
    tile.q.push_back(tensor::bf16_to_f32(tensor::f32_to_bf16(normal(random))));
  }
  for (int64_t token = 0; token < kTokens; ++token) {
    tile.requests.push_back(0);
    const bool nothing = token == kTokens - 1;
    tile.visible.push_back(nothing ? 0 : static_cast<int32_t>(kContext - 40 * token));
    for (int64_t k = 0; k < kTopk; ++k) {  // every other position, with holes
      const bool hole = nothing || k % 5 == 4;
      tile.slots.push_back(hole ? -1 : slot_of(kContext - 1 - token - 2 * k));
    }
  }
  return tile;
}

HostProblem problem_of(const Tile& tile, Selection selection) {
  HostProblem problem{.shape = tile.shape, .requests = 1};
  MlaArgs& args = problem.args;
  args.q = tile.q.data();
  args.kv = tile.cache.latent_rows(0);
  args.selection = selection;
  args.sparse = {tile.slots.data(), kTopk};
  args.dense = {tile.block_table.data(), static_cast<int64_t>(tile.block_table.size()),
                tile.requests.data(), tile.visible.data()};
  args.tokens = kTokens;
  args.sm_scale = 1 / std::sqrt(static_cast<float>(tile.shape.width()));
  return problem;
}

double largest_difference(const std::vector<float>& got, const std::vector<float>& want) {
  double largest = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    if (got[i] == want[i]) continue;  // infinities of one sign have no difference
    const double difference = std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i]));
    // A comparison with NaN is false: it must not look like the smallest difference.
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, difference);
  }
  return largest;
}

std::vector<ProbeTile> probe_tiles() {
  std::vector<ProbeTile> out;
  for (const int64_t rope : {64, 0}) {
    for (const KvFormat format :
         {KvFormat::kBf16, KvFormat::kF32, KvFormat::kFp8Ds, KvFormat::kQ8_0}) {
      for (const int64_t heads : {4, 64, 128, 8, 16, 32}) {
        out.push_back({{heads, 512, rope}, format});
      }
    }
  }
  return out;
}

Facts host_facts() { return Facts().set(Fact::kDevice, DeviceKind::kCpu); }

// Compares two calls, with lse and without, with the reference's, which runs on the host.
void compare(const Backend& backend, const ProbeTile& asked, Selection selection,
             const Resources& resources, ProbeResult* result) {
  const Facts facts = probe_facts(asked, selection, host_facts());
  const Backend& reference = chosen_backend(select_backend(facts, "cpu_reference"));
  const Tile tile = make_tile(asked);
  HostProblem problem = problem_of(tile, selection);
  const Result<HostAnswer> got = run_once(backend, problem, resources);
  problem.with_lse = false;
  const Result<HostAnswer> alone = got ? run_once(backend, problem, resources) : got;
  if (!alone) {
    result->problem = alone.error().to_string();
    return;
  }
  problem.with_lse = true;
  ThreadPool pool(1);
  const ops::Kernels* kernels =
      resources.kernels != nullptr ? resources.kernels : ops::available_kernels().front();
  const Result<HostAnswer> want = run_once(reference, problem, {&pool, kernels});
  TOPKNOT_ASSERT(want.has_value());  // it has no way to fail
  result->largest_difference =
      std::max({largest_difference(got->out, want->out), largest_difference(alone->out, want->out),
                largest_difference(got->lse, want->lse)});
}

// A device to probe on.
struct Place {
  Resources resources;
  Facts device;
};

// Those of the host with every instruction set this processor has, or every GPU that is here.
std::vector<Place> places_of(const Backend& backend, const device::Machine& machine,
                             ThreadPool* pool) {
  std::vector<Place> out;
  if (device_kind(backend) == DeviceKind::kCpu) {
    for (const ops::Kernels* kernels : ops::available_kernels()) {
      out.push_back({{pool, kernels}, host_facts()});
    }
    return out;
  }
  for (size_t gpu = 0; gpu < machine.devices.size(); ++gpu) {  // GPUs come first, by index
    if (machine.devices[gpu].kind != DeviceKind::kCuda) continue;
    out.push_back({{.cuda_device = static_cast<int>(gpu)}, device_facts(machine.devices[gpu])});
  }
  return out;
}

// A library's limits may be narrow, and its code has no instruction sets of ours.
std::vector<ProbeResult> probe_library(const Backend& backend, std::span<const Place> places) {
  std::vector<ProbeResult> results;
  if (places.empty()) return results;
  const Place& first = places.front();
  for (const Selection selection : {Selection::kSparse, Selection::kDense}) {
    const auto tile = find_tile(backend, selection, first.device);
    if (!tile) continue;
    results.push_back(probe_tile(backend, *tile, selection, first.resources, first.device));
    results.back().kernels = "library";
  }
  return results;
}

}  // namespace

std::string ProbeTile::to_string() const {
  return cat(shape.heads, " heads, rows of ", shape.kv_lora_rank, " + ", shape.qk_rope_head_dim,
             " in ", kv_format_name(format));
}

Facts probe_facts(const ProbeTile& tile, Selection selection, const Facts& device) {
  const bool gpu = device[Fact::kDevice] == std::optional<int64_t>(int64_t(DeviceKind::kCuda));
  Facts facts(device);
  facts.set(Fact::kSelection, selection)
      .set(Fact::kHeads, tile.shape.heads)
      .set(Fact::kKvLoraRank, tile.shape.kv_lora_rank)
      .set(Fact::kQkRopeHeadDim, tile.shape.qk_rope_head_dim)
      .set(Fact::kQkNopeHeadDim, kQkNopeDim)
      .set(Fact::kHeadSize, tile.shape.width())
      .set(Fact::kKvFormat, tile.format)
      .set(Fact::kDtype, gpu ? ActivationType::kBf16 : ActivationType::kF32)
      .set(Fact::kPageTokens, kPageTokens);
  if (selection == Selection::kSparse) facts.set(Fact::kTopk, kTopk);
  return facts;
}

std::optional<ProbeTile> find_tile(const Backend& backend, Selection selection,
                                   const Facts& device) {
  for (const ProbeTile& tile : probe_tiles()) {
    if (!select_backend(probe_facts(tile, selection, host_facts()), "cpu_reference").chosen) {
      continue;
    }
    if (refusals(backend, probe_facts(tile, selection, device)).empty()) return tile;
  }
  return std::nullopt;
}

ProbeResult probe_tile(const Backend& backend, const ProbeTile& tile, Selection selection,
                       const Resources& resources, const Facts& device) {
  const bool rounds = backend.activations == ActivationType::kBf16;
  ProbeResult result{.backend = backend.name,
                     .kernels = resources.kernels != nullptr
                                    ? std::string(resources.kernels->name)
                                    : cat("sm_", device[Fact::kSm].value_or(0)),
                     .selection = selection == Selection::kSparse ? "sparse" : "dense",
                     .limit = rounds ? kBf16Limit : kLimit};
  for (const Refusal& refusal : refusals(backend, probe_facts(tile, selection, device))) {
    result.refusals.push_back(cat(refusal.what, ": needs ", refusal.needed, ", found ",
                                  refusal.found, ": ", refusal.because));
  }
  if (result.refusals.empty()) compare(backend, tile, selection, resources, &result);
  return result;
}

std::vector<ProbeResult> probe_backend(const Backend& backend, const Resources& resources,
                                       const Facts& device) {
  std::vector<ProbeResult> results;
  for (const Selection selection : {Selection::kSparse, Selection::kDense}) {
    results.push_back(probe_tile(backend, {}, selection, resources, device));
  }
  return results;
}

std::vector<ProbeResult> probe_all(const BackendList& backends, ThreadPool* pool) {
  std::vector<ProbeResult> results;
  const auto add = [&](std::vector<ProbeResult> found) {
    std::move(found.begin(), found.end(), std::back_inserter(results));
  };
  const device::Machine machine = device::this_machine();
  for (const BackendEntry& entry : backends.entries()) {
    if (entry.backend == nullptr) continue;
    const std::vector<Place> places = places_of(*entry.backend, machine, pool);
    if (!entry.library.empty()) {
      add(probe_library(*entry.backend, places));
      continue;
    }
    for (const Place& each : places) {
      add(probe_backend(*entry.backend, each.resources, each.device));
    }
  }
  return results;
}

}  // namespace topknot::attention
