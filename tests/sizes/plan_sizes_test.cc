// T-4.4: what a plan counts is exact where 32 bits end, and refused where 64 do. Expected numbers
// are computed here in 128 bits, from the formulas of docs/plan.md.
#include <gmock/gmock.h>

#include <limits>

#include "model/workspace.h"
#include "plan/placement.h"
#include "plan/plan.h"

namespace topknot::test {
namespace {

using testing::HasSubstr;
using Wide = unsigned __int128;

constexpr int64_t kMillion = 1'048'576;  // tokens that GLM-5.2 was trained for
constexpr Wide kTwo40 = Wide{1} << 40;
constexpr uint64_t kPetabyte = 1'000'000'000'000'000;

// GLM-5.2's attention: 79 layers, 22 of them with an indexer.
model::ModelConfig config() {
  model::ModelConfig c;
  c.architecture = "glm-dsa";
  c.layers = 79;
  c.hidden = 6144;
  c.context_length = kMillion;
  c.heads = 64;
  c.q_lora_rank = 2048;
  c.kv_lora_rank = 512;
  c.qk_nope_head_dim = 192;
  c.qk_rope_head_dim = 64;
  c.v_head_dim = 256;
  model::IndexerConfig indexer{.heads = 32, .head_dim = 128, .topk = 2048, .rope_dim = 64};
  for (int64_t layer = 0; layer < c.layers; ++layer) {
    indexer.full_layers.push_back(layer < 3 || (layer - 2) % 4 == 0);
  }
  EXPECT_EQ(std::count(indexer.full_layers.begin(), indexer.full_layers.end(), true), 22);
  c.indexer = indexer;
  return c;
}

device::Machine machine(device::DeviceKind kind, std::optional<uint64_t> memory) {
  device::Machine out;
  out.name = "large";
  out.host.cores = 2;
  out.host.instructions = std::vector<std::string>{"avx2", "fma"};
  out.host.memory_usable_bytes = out.host.memory_bytes = memory;
  device::DeviceFacts device;
  device.kind = kind;
  device.name = out.name;
  device.sm = 90;
  device.memory_usable_bytes = device.memory_bytes = memory;
  out.devices.push_back(device);
  return out;
}

struct RowBytes {
  const char* format;
  Wide latent, index;  // of a row
};
constexpr RowBytes kRowBytes[] = {{"f32", 4 * 576, 4 * 128},
                                  {"bf16", 2 * 576, 2 * 128},
                                  {"fp8", 512 + 4 * 4 + 2 * 64, 128 + 4},
                                  {"q8_0", 18 * 34, 4 * 34}};

TEST(PlanSizes, CachesOfMoreThan40BitsAreCountedToTheByte) {
  int large = 0;
  for (const RowBytes& row : kRowBytes) {
    for (const int64_t context : {kMillion, int64_t{1'000'001}}) {
      for (const int64_t sequences : {int64_t{1}, int64_t{7}, int64_t{1024}, int64_t{2047}}) {
        for (const int ranks : {1, 8, 64}) {
          SCOPED_TRACE(testing::Message() << row.format << ", " << context << " x " << sequences
                                          << ", " << ranks << " ranks");
          plan::PlanRequest request;
          request.kv_cache_dtype = row.format;
          request.context = context;
          request.sequences = sequences;
          request.ranks = ranks;
          const auto plan =
              plan::make_plan(config(), {}, request, machine(device::DeviceKind::kCuda, kPetabyte));
          ASSERT_TRUE(plan) << plan.error().to_string();
          const Wide slots = Wide(context + 63) / 64 * 64 * Wide(sequences);
          const Wide expected = slots * (79 * row.latent + 22 * row.index);
          large += expected > kTwo40;
          for (int rank = 0; rank < ranks; ++rank) {
            EXPECT_EQ(Wide(plan->memory.devices[static_cast<size_t>(rank)].cache), expected);
          }
        }
      }
    }
  }
  EXPECT_GT(large, 40) << "most of them are beyond 2^40 bytes";
}

TEST(PlanSizes, RanksOfOneHostAddUp) {
  plan::PlanRequest request;
  request.kv_cache_dtype = "bf16";
  request.context = kMillion;
  request.sequences = 2047;
  request.ranks = 64;
  request.device = "cpu";
  const auto plan =
      plan::make_plan(config(), {}, request, machine(device::DeviceKind::kCpu, kPetabyte));
  ASSERT_TRUE(plan) << plan.error().to_string();
  const Wide each = Wide(kMillion) * 2047 * (79 * 1152 + 22 * 256);
  const plan::MemoryUse& host = plan->memory.devices.front();
  EXPECT_EQ(Wide(host.cache), 64 * each);
  EXPECT_EQ(Wide(host.total()),
            Wide(host.weights) + host.cache + host.workspace + host.staging + host.reserve);
  EXPECT_FALSE(host.fits());
  ASSERT_FALSE(plan->memory.remedies.empty());
  for (const plan::Remedy& remedy : plan->memory.remedies) {
    EXPECT_THAT(remedy.detail, testing::Not(HasSubstr("16.0 EiB"))) << remedy.change;
  }
}

TEST(PlanSizes, BuffersOfAStepOfMoreThan31BitsOfElements) {
  const model::StepSizes sizes =
      model::step_sizes(config(), true, {.tokens = plan::kMaxUbatch, .context = kMillion});
  EXPECT_EQ(Wide(sizes.absorbed), Wide(65'536) * 64 * 576);
  EXPECT_GT(sizes.absorbed, int64_t{1} << 31);
  EXPECT_EQ(Wide(sizes.attended), Wide(65'536) * 64 * 512);
  EXPECT_EQ(Wide(sizes.selection), Wide(65'536) * 2048);
  const Wide floats = Wide(3) * sizes.residual + sizes.q_latent + sizes.q + sizes.kv +
                      sizes.absorbed + sizes.attended + sizes.values + Wide(2) * sizes.mlp +
                      Wide(2) * sizes.rope + sizes.visible + sizes.index_q + sizes.index_k +
                      sizes.index_weights + Wide(2) * sizes.selection;
  EXPECT_EQ(Wide(sizes.bytes()), 4 * floats);
}

TEST(PlanSizes, ATensorsPartsOfMoreThan32BitsAddUp) {
  gguf::TensorInfo info;
  info.name = "huge";
  info.type = tensor::DType::kF32;
  info.dims = 3;
  info.ne = {uint64_t{1} << 20, uint64_t{1} << 20, 4096, 1};
  info.bytes = uint64_t{1} << 54;
  const model::UsedTensor tensor{
      .info = &info, .layer = 3, .use = model::Use::kHeads, .split = model::Split::kHeads};
  for (const int ranks : {1, 3, 7, 64}) {
    Wide sum = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const plan::RankShare share = plan::share_of_rank(config(), 1000, {}, ranks, rank);
      const plan::TensorShare mine = plan::share_of_tensor(tensor, config(), 1000, share);
      EXPECT_EQ(Wide(mine.bytes), (Wide{1} << 54) * Wide(share.heads) / 64) << rank;
      EXPECT_EQ(Wide(mine.elements), (Wide{1} << 52) * Wide(share.heads) / 64) << rank;
      sum += mine.bytes;
    }
    EXPECT_EQ(sum, Wide{1} << 54) << ranks;
  }
}

void expect_refused(const model::ModelConfig& model, const plan::PlanRequest& request,
                    const device::Machine& on, std::string_view where) {
  const auto plan = plan::make_plan(model, {}, request, on);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, Code::kOutOfRange);
  EXPECT_THAT(plan.error().where, HasSubstr(std::string(where)));
  EXPECT_FALSE(plan.error().why.empty());
  EXPECT_FALSE(plan.error().fix.empty());
}

TEST(PlanSizes, AbsurdNumbersAreRefusedNotWrapped) {
  const auto host = machine(device::DeviceKind::kCpu, kPetabyte);
  model::ModelConfig endless = config();
  endless.context_length = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const int64_t context : {int64_t{1} << 31, int64_t{1} << 40, kMost, int64_t{-1}}) {
    expect_refused(endless, {.context = context}, host, "--ctx-size");
    expect_refused(config(), {.context = context}, host, "--ctx-size");
  }
  for (const int64_t sequences : {int64_t{1} << 31, int64_t{1} << 40, kMost, int64_t{-1}}) {
    expect_refused(config(), {.sequences = sequences}, host, "--parallel");
    expect_refused(endless, {.context = 1 << 30, .sequences = sequences}, host, "--parallel");
  }
  for (const int64_t ubatch : {int64_t{1} << 31, int64_t{1} << 40, kMost, int64_t{-1}}) {
    expect_refused(config(), {.ubatch = ubatch}, host, "--ubatch-size");
  }
  expect_refused(config(), {.context = kMillion, .sequences = 2048}, host, "--ctx-size");
}

// Slots are numbered by 32 bits, and each sequence has whole pages.
TEST(PlanSizes, TheLargestContextOfManySequencesHasSlotsForItsPages) {
  for (const int64_t sequences :
       {int64_t{2047}, int64_t{2048}, int64_t{5000}, plan::kMaxSequences}) {
    const auto plan = plan::make_plan(config(), {}, {.sequences = sequences},
                                      machine(device::DeviceKind::kCpu, kPetabyte));
    ASSERT_TRUE(plan) << plan.error().to_string();
    const Wide slots = Wide(plan->context + 63) / 64 * 64 * Wide(sequences);
    EXPECT_LE(slots, Wide(kvcache::kMaxSlots)) << sequences;
    EXPECT_GT(slots, Wide(kvcache::kMaxSlots) * 9 / 10) << sequences;
  }
}

// The widest rows and the most layers that metadata may state.
model::ModelConfig widest() {
  model::ModelConfig c = config();
  c.indexer.reset();
  c.layers = model::kMaxLayers;
  c.heads = 1024;
  c.kv_lora_rank = model::kMaxWidth;
  c.qk_rope_head_dim = model::kMaxWidth;
  c.context_length = model::kMaxContext;
  return c;
}

TEST(PlanSizes, BytesUpTo64BitsAreExactAndBeyondThemARefusal) {
  // 4096 layers x 2^21 elements x 4 bytes: 2^35 a token.
  plan::PlanRequest request{.kv_cache_dtype = "f32", .context = 1 << 28};
  const auto on_gpu = machine(device::DeviceKind::kCuda, kPetabyte);
  const auto plan = plan::make_plan(widest(), {}, request, on_gpu);
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_EQ(plan->memory.devices[0].cache, uint64_t{1} << 63);
  EXPECT_FALSE(plan->memory.fits());
  request.context = 1 << 30;
  for (const auto kind : {device::DeviceKind::kCuda, device::DeviceKind::kCpu}) {
    for (const std::optional<uint64_t> memory :
         {std::optional(kPetabyte), std::optional<uint64_t>()}) {
      expect_refused(widest(), request, machine(kind, memory), "--ctx-size");
    }
  }
  // Each of 1024 ranks can be counted; what one host has to hold for all of them cannot.
  request.context = 1 << 24;
  request.ranks = 1024;
  expect_refused(widest(), request, machine(device::DeviceKind::kCpu, std::nullopt), "--ctx-size");
}

}  // namespace
}  // namespace topknot::test
