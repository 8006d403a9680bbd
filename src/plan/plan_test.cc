#include "plan/plan.h"

#include <gmock/gmock.h>

#include "attention/registry.h"

namespace topknot::plan {
namespace {

using testing::HasSubstr;

model::ModelConfig config() {
  model::ModelConfig c;
  c.architecture = "glm-dsa";
  c.layers = 3;
  c.context_length = 16'384;
  c.heads = 4;
  c.kv_lora_rank = 512;
  c.qk_rope_head_dim = 64;
  c.indexer = model::IndexerConfig{
      .heads = 4, .head_dim = 128, .topk = 256, .rope_dim = 64, .full_layers = {true, false, true}};
  c.sparse_reason = "glm-dsa.attention.indexer.top_k = 256";
  return c;
}

device::HostFacts host(uint64_t available) {
  device::HostFacts facts;
  facts.cores = 2;
  facts.memory.total_bytes = available;
  facts.memory.available_bytes = available;
  return facts;
}

constexpr uint64_t kGib = uint64_t{1} << 30;
constexpr uint64_t kPerToken = (3 * 576 + 2 * 128) * 2;

TEST(Plan, ChoosesSparseAttentionAndTheTrainedContextWhenMemoryAllows) {
  const auto plan = make_plan(config(), {}, host(8 * kGib));
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->sparse);
  EXPECT_EQ(attention::chosen_backend(plan->attention).name, "cpu_simd");
  EXPECT_EQ(plan->context, 16'384);
  EXPECT_EQ(plan->cache_bytes, 16'384 * kPerToken);
  EXPECT_TRUE(plan->warnings.empty());
}

TEST(Plan, TheDefaultContextShrinksWithFreeMemoryBesideTheWeights) {
  const auto plan = make_plan(config(), {.weight_bytes = kGib}, host(kGib + 10'000 * kPerToken));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->context, 8'000 / 64 * 64);
}

TEST(Plan, AContextThatDoesNotFitNamesTheLargestThatDoes) {
  const auto plan = make_plan(config(), {.context = 16'000}, host(1'000 * kPerToken));
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, Code::kResource);
  EXPECT_THAT(plan.error().fix, HasSubstr("-c 960 or less"));
}

TEST(Plan, AContextBeyondTheTrainedOneIsRefusedWithTheWayAround) {
  const auto plan = make_plan(config(), {.context = 16'385}, host(8 * kGib));
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, Code::kOutOfRange);
  EXPECT_THAT(plan.error().to_string(), HasSubstr("trained for 16384"));
  EXPECT_THAT(plan.error().fix, HasSubstr("--override-kv glm-dsa.context_length=int:N"));
}

// T-2.9
TEST(Plan, DenseOnASparseModelIsAllowedByNameAndWarnedAbout) {
  const auto plan = make_plan(config(), {.dense = true}, host(8 * kGib));
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->sparse);
  ASSERT_EQ(plan->warnings.size(), 1u);
  EXPECT_THAT(plan->warnings[0], HasSubstr("trained for sparse attention"));
  EXPECT_EQ(plan->cache.bytes_per_token(), 3 * 576 * 2) << "no index rows without an indexer";
}

TEST(Plan, AnFp16ResidualIsRefusedWithReasonAndRemedy) {
  for (const char* name : {"f16", "fp16", "float16", "half"}) {
    const auto plan = make_plan(config(), {.dtype = name}, host(8 * kGib));
    ASSERT_FALSE(plan);
    EXPECT_THAT(plan.error().to_string(), HasSubstr("overflows"));
    EXPECT_THAT(plan.error().fix, HasSubstr("--dtype bf16"));
  }
}

TEST(Plan, ARowFormatNoBackendTakesIsRefusedByTheRules) {
  const auto plan = make_plan(config(), {.kv_cache_dtype = "q8_0"}, host(8 * kGib));
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().to_string(), HasSubstr("kv_format: needs one of f32, bf16, found q8_0"));
}

TEST(Plan, NamesThatDoNotExistAreErrors) {
  EXPECT_FALSE(make_plan(config(), {.dtype = "f8"}, host(kGib)));
  EXPECT_FALSE(make_plan(config(), {.kv_cache_dtype = "f16"}, host(kGib)));
  EXPECT_FALSE(make_plan(config(), {.kernels = "sse9"}, host(kGib)));
  const auto plan = make_plan(config(), {.attention_backend = "cpu_simt"}, host(kGib));
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.error().fix, HasSubstr("did you mean 'cpu_simd'"));
}

}  // namespace
}  // namespace topknot::plan
