#include <gmock/gmock.h>

#include <algorithm>

#include "support/golden.h"
#include "topknot/plan.h"

namespace topknot {
namespace {

using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

PlanOptions tiny() {
  PlanOptions options;
  options.model = test::bundled_model_path();
  options.context = 4096;
  options.threads = 2;
  return options;
}

const PlanChoice* find(const ModelPlan& plan, std::string_view operation) {
  const auto found = std::find_if(plan.operations.begin(), plan.operations.end(),
                                  [&](const auto& each) { return each.operation == operation; });
  return found == plan.operations.end() ? nullptr : &*found;
}

const PlanCandidate* find(const PlanChoice& choice, std::string_view name) {
  const auto found = std::find_if(choice.candidates.begin(), choice.candidates.end(),
                                  [&](const auto& each) { return each.name == name; });
  return found == choice.candidates.end() ? nullptr : &*found;
}

TEST(PartsPlan, ThisMachineRunsTheBundledModel) {
  const auto plan = plan_model(tiny());
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_TRUE(plan->complete);
  EXPECT_TRUE(plan->fits);
  EXPECT_EQ(plan->architecture, "glm-dsa");
  EXPECT_EQ(plan->device, "cpu");
  EXPECT_TRUE(plan->sparse);
  EXPECT_EQ(plan->index_topk, 256);
  EXPECT_EQ(plan->context, 4096);
  EXPECT_EQ(plan->kv_cache_dtype, "bf16");
  // A latent row of 512 + 64 and, in each of three layers, an index row of 128, two bytes each.
  EXPECT_EQ(plan->cache_bytes_per_token, 3 * (576 + 128) * 2);
  ASSERT_EQ(plan->memory.size(), 1u);
  const PlanMemory& host = plan->memory.front();
  EXPECT_EQ(host.cache_bytes, 4096u * 3 * (576 + 128) * 2);
  EXPECT_EQ(host.total_bytes, host.weights_bytes + host.cache_bytes + host.workspace_bytes +
                                  host.staging_bytes + host.reserve_bytes);
  EXPECT_THAT(plan->operations, Each(Field(&PlanChoice::chosen, Not(IsEmpty()))));
  EXPECT_EQ(find(*plan, "attention decode")->chosen, "cpu_simd");
  ASSERT_FALSE(plan->decode.empty());
  EXPECT_GT(plan->decode.front().bytes, 0);
  EXPECT_FALSE(plan->decode.front().parts.empty());
}

TEST(PartsPlan, AnotherMachineIsPlannedForByName) {
  PlanOptions options = tiny();
  options.machine = "rtx-pro-6000";
  options.tensor_parallel_size = 2;
  const auto plan = plan_model(options);
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_EQ(plan->device, "cuda:0");
  ASSERT_EQ(plan->memory.size(), 3u) << "two devices and the host";
  EXPECT_NE(find(*plan, "collectives"), nullptr);
  const PlanCandidate* const simd = find(*find(*plan, "attention decode"), "cpu_simd");
  ASSERT_NE(simd, nullptr);
  ASSERT_FALSE(simd->refusals.empty());
  EXPECT_EQ(simd->refusals.front().what, "device");
  EXPECT_EQ(simd->refusals.front().needed, "exactly cpu");
  EXPECT_EQ(simd->refusals.front().found, "cuda");
  EXPECT_TRUE(plan->decode.front().seconds.has_value()) << "its peaks are stated";
}

TEST(PartsPlan, WhatDoesNotFitComesWithRemedies) {
  PlanOptions options = tiny();
  options.machine = test::data_path("plan/no-such-machine.json");
  EXPECT_EQ(plan_model(options).error().code, Code::kNotFound);
  options.machine = "cpu-16-core-desktop";
  options.context = 16'384;
  options.sequences = 65'536;
  const auto plan = plan_model(options);
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_FALSE(plan->fits);
  EXPECT_FALSE(plan->remedies.empty());
}

TEST(PartsPlan, WrongQuestionsAreErrors) {
  const auto code_of = [](auto change) {
    PlanOptions options = tiny();
    change(&options);
    const auto plan = plan_model(options);
    EXPECT_FALSE(plan);
    return plan ? Code::kCancelled : plan.error().code;
  };
  EXPECT_EQ(code_of([](PlanOptions* o) { o->model = ""; }), Code::kNotFound);
  EXPECT_EQ(code_of([](PlanOptions* o) { o->machine = "rtx-pro-6001"; }), Code::kNotFound);
  EXPECT_EQ(code_of([](PlanOptions* o) { o->device = "cuda:7x"; }), Code::kInvalidArgument);
  EXPECT_EQ(code_of([](PlanOptions* o) { o->context = -1; }), Code::kOutOfRange);
  EXPECT_EQ(code_of([](PlanOptions* o) { o->sequences = 0; }), Code::kOutOfRange);
  EXPECT_EQ(code_of([](PlanOptions* o) { o->tensor_parallel_size = 0; }), Code::kOutOfRange);
  EXPECT_EQ(code_of([](PlanOptions* o) { o->ubatch = INT64_MIN; }), Code::kOutOfRange);
  EXPECT_EQ(code_of([](PlanOptions* o) { o->attention_backend = "cpu_smid"; }), Code::kNotFound);
  EXPECT_EQ(code_of([](PlanOptions* o) { o->override_kv = {"x"}; }), Code::kInvalidArgument);
}

AttentionFacts glm5_on_cpu() {
  AttentionFacts facts;
  facts.device = "cpu";
  facts.heads = 64;
  facts.kv_lora_rank = 512;
  facts.qk_rope_head_dim = 64;
  facts.topk = 2048;
  return facts;
}

TEST(PartsBackend, StatedFactsChooseABackend) {
  const auto choice = select_attention_backend(glm5_on_cpu());
  ASSERT_TRUE(choice) << choice.error().to_string();
  EXPECT_EQ(choice->chosen, "cpu_simd");
  EXPECT_EQ(choice->operation, "sparse MLA attention");
  EXPECT_THAT(choice->asked, HasSubstr("heads=64 kv_lora_rank=512 qk_rope_head_dim=64 topk=2048"));
  EXPECT_NE(find(*choice, "cpu_reference"), nullptr);
  const auto forced = select_attention_backend(glm5_on_cpu(), "cpu_reference");
  ASSERT_TRUE(forced);
  EXPECT_EQ(forced->chosen, "cpu_reference");
}

TEST(PartsBackend, EveryRefusalIsInTheAnswer) {
  AttentionFacts facts = glm5_on_cpu();
  facts.kv_format = "f16";  // latent rows leave its range: no backend will ever take it
  const auto choice = select_attention_backend(facts);
  ASSERT_TRUE(choice);
  EXPECT_THAT(choice->chosen, IsEmpty());
  EXPECT_THAT(choice->candidates, Each(Field(&PlanCandidate::refusals, Not(IsEmpty()))));
  for (const char* name : {"cpu_simd", "cpu_reference"}) {
    const PlanRefusal& refusal = find(*choice, name)->refusals.front();
    EXPECT_EQ(refusal.what, "kv_format");
    EXPECT_EQ(refusal.found, "f16");
    EXPECT_THAT(refusal.remedy, HasSubstr("bf16"));
    EXPECT_THAT(choice->explanation, HasSubstr(name));
  }
  const auto forced = select_attention_backend(facts, "cpu_simd");
  ASSERT_TRUE(forced);
  EXPECT_THAT(forced->chosen, IsEmpty()) << "no second choice for a name the user gave";
}

TEST(PartsBackend, AMachineOfAFileIsAskedByItsFacts) {
  AttentionFacts facts = glm5_on_cpu();
  facts.machine = "h200";
  facts.device = "";
  const auto choice = select_attention_backend(facts);
  ASSERT_TRUE(choice) << choice.error().to_string();
  EXPECT_THAT(choice->asked, HasSubstr("device=cuda sm=90 smem_per_block=232448"));
  const PlanCandidate* const simd = find(*choice, "cpu_simd");
  ASSERT_NE(simd, nullptr);
  EXPECT_EQ(simd->refusals.front().found, "cuda");
}

TEST(PartsBackend, WrongQuestionsAreErrors) {
  AttentionFacts facts = glm5_on_cpu();
  EXPECT_EQ(select_attention_backend(facts, "cpu_smid").error().code, Code::kNotFound);
  EXPECT_THAT(select_attention_backend(facts, "cpu_smid").error().fix, HasSubstr("cpu_simd"));
  facts.kv_format = "bf61";
  const auto format = select_attention_backend(facts);
  ASSERT_FALSE(format);
  EXPECT_EQ(format.error().code, Code::kInvalidArgument);
  EXPECT_THAT(format.error().fix, HasSubstr("bf16"));
  facts = glm5_on_cpu();
  for (const int64_t wrong : {int64_t{0}, INT64_MIN, INT64_MAX}) {
    facts.kv_lora_rank = wrong;
    EXPECT_EQ(select_attention_backend(facts).error().code, Code::kOutOfRange);
  }
  facts = glm5_on_cpu();
  facts.machine = "no-such-machine";
  EXPECT_EQ(select_attention_backend(facts).error().code, Code::kNotFound);
}

}  // namespace
}  // namespace topknot
