#include "plan/plan.h"

#include <gmock/gmock.h>

namespace topknot::plan {
namespace {

using testing::HasSubstr;

model::ModelConfig config() {
  model::ModelConfig c;
  c.architecture = "glm-dsa";
  c.layers = 3;
  c.hidden = 256;
  c.context_length = 16'384;
  c.heads = 4;
  c.kv_lora_rank = 512;
  c.qk_nope_head_dim = 192;
  c.qk_rope_head_dim = 64;
  c.v_head_dim = 256;
  c.indexer = model::IndexerConfig{
      .heads = 4, .head_dim = 128, .topk = 256, .rope_dim = 64, .full_layers = {true, false, true}};
  c.sparse_reason = "glm-dsa.attention.indexer.top_k = 256";
  return c;
}

device::Machine host(uint64_t usable) {
  device::HostFacts facts;
  facts.cpu_name = "a processor";
  facts.cores = 2;
  facts.features.avx2 = facts.features.fma = true;
  facts.memory.total_bytes = usable;
  facts.memory.available_bytes = usable;
  return device::machine_of(facts, {});
}

Result<Plan> plan_of(const PlanRequest& request, const device::Machine& machine) {
  return make_plan(config(), {}, request, machine);
}

// What an engine would say.
Error refusal(const PlanRequest& request, const device::Machine& machine) {
  const auto plan = plan_of(request, machine);
  if (!plan) return plan.error();
  const Status can = check_runnable(*plan, request);
  EXPECT_FALSE(can) << "it is runnable";
  return can ? Error{} : can.error();
}

constexpr uint64_t kGib = uint64_t{1} << 30;
constexpr uint64_t kPerToken = (3 * 576 + 2 * 128) * 2;

TEST(Plan, ChoosesSparseAttentionAndTheTrainedContextWhenMemoryAllows) {
  const auto plan = plan_of({}, host(8 * kGib));
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->sparse);
  EXPECT_TRUE(plan->complete());
  EXPECT_TRUE(check_runnable(*plan, {}));
  EXPECT_EQ(plan->attention_backend->name, "cpu_simd");
  EXPECT_EQ(plan->kernels, "avx2");
  EXPECT_EQ(plan->context, 16'384);
  EXPECT_EQ(plan->cache_bytes, 16'384 * kPerToken);
  EXPECT_TRUE(plan->warnings.empty());
}

TEST(Plan, EveryHostOperationRunsOnTheSameLoops) {
  const auto plan = plan_of({.kernels = "reference"}, host(8 * kGib));
  ASSERT_TRUE(plan);
  for (const Operation& each : plan->operations) {
    if (each.name() == kNorms || each.name() == kRope || each.name() == kIndexerScores) {
      EXPECT_EQ(each.chosen(), "reference") << each.name();
    }
  }
  const Error error = refusal({.kernels = "avx512"}, host(8 * kGib));
  EXPECT_THAT(error.to_string(), HasSubstr("instructions: needs at least avx512, found avx2"));
}

TEST(Plan, TheDefaultContextLeavesAFifthOfWhatIsFreeBesideTheRest) {
  const auto all = plan_of({}, host(8 * kGib));
  ASSERT_TRUE(all);
  const MemoryUse& use = all->memory.devices.front();
  const auto plan = plan_of({}, host(use.total() - use.cache + 10'000 * kPerToken));
  ASSERT_TRUE(plan);
  EXPECT_GE(plan->context, 7'900);
  EXPECT_LE(plan->context, 8'300) << "the score rows of the indexer shrink, too";
  EXPECT_EQ(plan->context % 64, 0);
}

// T-4.2
TEST(Plan, AContextThatDoesNotFitNamesTheLargestThatDoes) {
  const Error error = refusal({.context = 16'000}, host(64 << 20));
  EXPECT_EQ(error.code, Code::kResource);
  ASSERT_THAT(error.fix, HasSubstr("-c "));
  const int64_t largest = std::stoll(error.fix.substr(error.fix.find("-c ") + 3));
  const auto fits = plan_of({.context = largest}, host(64 << 20));
  ASSERT_TRUE(fits);
  EXPECT_TRUE(fits->memory.fits());
  const auto more = plan_of({.context = largest + 64}, host(64 << 20));
  ASSERT_TRUE(more);
  EXPECT_FALSE(more->memory.fits());
}

TEST(Plan, AContextBeyondTheTrainedOneIsRefusedWithTheWayAround) {
  const auto plan = plan_of({.context = 16'385}, host(8 * kGib));
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, Code::kOutOfRange);
  EXPECT_THAT(plan.error().to_string(), HasSubstr("trained for 16384"));
  EXPECT_THAT(plan.error().fix, HasSubstr("--override-kv glm-dsa.context_length=int:N"));
}

// T-2.9
TEST(Plan, DenseOnASparseModelIsAllowedByNameAndWarnedAbout) {
  const auto plan = plan_of({.dense = true}, host(8 * kGib));
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->sparse);
  ASSERT_EQ(plan->warnings.size(), 1u);
  EXPECT_THAT(plan->warnings[0], HasSubstr("trained for sparse attention"));
  EXPECT_EQ(plan->cache.bytes_per_token(), 3 * 576 * 2) << "no index rows without an indexer";
}

TEST(Plan, AnFp16ResidualIsRefusedWithReasonAndRemedy) {
  for (const char* name : {"f16", "fp16", "float16", "half"}) {
    const auto plan = plan_of({.dtype = name}, host(8 * kGib));
    ASSERT_FALSE(plan);
    EXPECT_THAT(plan.error().to_string(), HasSubstr("overflows"));
    EXPECT_THAT(plan.error().fix, HasSubstr("--dtype bf16"));
  }
}

TEST(Plan, ARowFormatThatNothingWritesIsRefusedByTheRules) {
  const auto plan = plan_of({.kv_cache_dtype = "q8_0"}, host(8 * kGib));
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->complete());
  size_t refused_operations = 0;
  for (const Operation& each : plan->operations) refused_operations += each.chosen().empty();
  EXPECT_EQ(refused_operations, 4u) << "cache writer, indexer, attention twice";
  EXPECT_THAT(refusal({.kv_cache_dtype = "q8_0"}, host(8 * kGib)).to_string(),
              HasSubstr("kv_format: needs one of f32, bf16, found q8_0"));
}

TEST(Plan, NamesThatDoNotExistAreErrors) {
  EXPECT_FALSE(plan_of({.dtype = "f8"}, host(kGib)));
  EXPECT_FALSE(plan_of({.kv_cache_dtype = "f16"}, host(kGib)));
  EXPECT_FALSE(plan_of({.kernels = "sse9"}, host(kGib)));
  EXPECT_FALSE(plan_of({.device = "tpu"}, host(kGib)));
  EXPECT_FALSE(plan_of({.device = "cuda:0"}, host(kGib)));
  EXPECT_FALSE(plan_of({.sequences = 0}, host(kGib)));
  EXPECT_FALSE(plan_of({.ranks = 0}, host(kGib)));
  EXPECT_FALSE(plan_of({.ranks = 5}, host(kGib))) << "four heads";
  const auto plan = plan_of({.attention_backend = "cpu_simt"}, host(kGib));
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().fix, HasSubstr("did you mean 'cpu_simd'"));
}

TEST(Plan, WhatNobodyStatedIsUnknownNotGuessed) {
  const auto plan = plan_of({}, host(kGib));
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->price.decode.front().seconds.has_value());
  EXPECT_FALSE(plan->price.load_seconds.has_value());
  EXPECT_THAT(plan->price.unknown,
              testing::ElementsAre("disk_bytes_per_second", "memory_bytes_per_second",
                                   "operations_per_second.fp32"));
  device::Machine machine = host(kGib);
  machine.host.memory_usable_bytes.reset();
  machine.host.memory_bytes.reset();
  const auto without = plan_of({}, machine);
  ASSERT_TRUE(without);
  EXPECT_TRUE(without->memory.fits());
  EXPECT_FALSE(without->memory.devices.front().usable.has_value());
}

}  // namespace
}  // namespace topknot::plan
