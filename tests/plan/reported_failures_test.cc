// T-1.5: what other engines accepted and then died of, minutes into loading, posed as the shape and
// the row format that was asked. Each is a complete plan, or a refusal with the values in its text.
#include "base/strings.h"
#include "plan/planned_model.h"

namespace topknot::test {
namespace {

using capability::KvFormat;
using testing::HasSubstr;

struct Row {
  const char* thread;
  int sm;
  uint64_t shared_memory;
  int64_t heads, topk, rope;
  KvFormat format;
};
constexpr uint64_t kSmallShared = 101'376;
constexpr uint64_t kLargeShared = 232'448;
constexpr Row kRows[] = {
    {"vllm#46726: indexer logits", 120, kSmallShared, 64, 2048, 64, KvFormat::kFp8Ds},
    {"InferenceX#2335: indexer metadata", 120, kSmallShared, 8, 2048, 64, KvFormat::kFp8Ds},
    {"vllm#53906: the cache writer, without rope", 120, kSmallShared, 32, 2048, 0,
     KvFormat::kFp8Ds},
    {"vllm#57578: the same on SM121", 121, kSmallShared, 8, 2048, 0, KvFormat::kFp8Ds},
    {"vllm#55277: a page table of another width", 120, kSmallShared, 32, 2176, 0, KvFormat::kBf16},
    {"vllm#55221: a storage type", 90, kLargeShared, 32, 2048, 0, KvFormat::kFp8E4m3},
    {"vllm#56837: no instance", 120, kSmallShared, 64, 1152, 64, KvFormat::kFp8Ds},
    {"flashinfer#5135: no instance in prefill", 120, kSmallShared, 16, 512, 64, KvFormat::kFp8Ds},
    {"flashinfer#4336, vllm#50720: no instance", 120, kSmallShared, 32, 256, 64, KvFormat::kFp8Ds},
    {"sglang#33134: a clamped top-k", 121, kSmallShared, 32, 192, 64, KvFormat::kFp8Ds},
    {"vllm#55526: eight heads", 120, kSmallShared, 8, 128, 64, KvFormat::kFp8Ds},
    {"omlx#2956: top-k 1024", 120, kSmallShared, 64, 1024, 64, KvFormat::kBf16},
    {"sglang#26087: seven backends", 120, kSmallShared, 64, 2048, 64, KvFormat::kBf16},
    {"sglang#40286: GB10 without rope", 121, kSmallShared, 16, 2048, 0, KvFormat::kBf16},
    {"sglang#37105: shared memory", 89, kSmallShared, 64, 2048, 64, KvFormat::kBf16},
    {"sglang#29562: GLM-5.2", 120, kSmallShared, 8, 2048, 64, KvFormat::kBf16},
};

model::ModelConfig config_of(const Row& row) {
  model::ModelConfig config;
  config.architecture = "other";
  config.layers = 2;
  config.hidden = 6144;
  config.context_length = 131'072;
  config.heads = row.heads;
  config.q_lora_rank = 2048;
  config.kv_lora_rank = 512;
  config.qk_rope_head_dim = row.rope;
  config.rope.dim = row.rope;
  config.qk_nope_head_dim = 192;
  config.v_head_dim = 256;
  config.indexer = model::IndexerConfig{.heads = 32,
                                        .head_dim = 128,
                                        .topk = row.topk,
                                        .rope_dim = row.rope,
                                        .full_layers = {true, true}};
  return config;
}

device::Machine cpu_machine() {
  device::HostFacts facts;
  facts.cores = 4;
  facts.memory.total_bytes = facts.memory.available_bytes = uint64_t{64} << 30;
  return device::machine_of(facts, {});
}

std::string format_name(KvFormat format) { return std::string(capability::kv_format_name(format)); }

TEST(ReportedFailures, OnItsCardEachIsRefusedWithItsValuesBeforeLoading) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.thread);
    plan::PlanRequest request;
    request.kv_cache_dtype = format_name(row.format);
    const auto plan = plan::make_plan(config_of(row), {}, request,
                                      gpu_machine(row.sm, row.shared_memory, uint64_t{96} << 30));
    ASSERT_TRUE(plan);
    expect_explained(*plan);
    if (plan->complete()) continue;  // once there are kernels
    for (const plan::Operation& each : plan->operations) {
      if (each.name() != plan::kAttentionDecode) continue;
      const std::string text = capability::refused(each.choice, each.asked, {}).to_string();
      EXPECT_THAT(text, HasSubstr(cat("sm=", row.sm)));
      EXPECT_THAT(text, HasSubstr(cat("heads=", row.heads)));
      EXPECT_THAT(text, HasSubstr(cat("topk=", row.topk)));
      EXPECT_THAT(text, HasSubstr(cat("qk_rope_head_dim=", row.rope)));
      EXPECT_THAT(text, HasSubstr(cat("kv_format=", format_name(row.format))));
      EXPECT_THAT(text, HasSubstr(cat("smem_per_block=", row.shared_memory)));
    }
  }
}

TEST(ReportedFailures, OnAProcessorTheShapeRunsAndOnlyTheRowFormatIsRefused) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.thread);
    const auto shape = plan::make_plan(config_of(row), {}, {}, cpu_machine());
    ASSERT_TRUE(shape);
    EXPECT_TRUE(shape->complete()) << "any heads, top-k and rope width";
    plan::PlanRequest request;
    request.kv_cache_dtype = format_name(row.format);
    const auto asked = plan::make_plan(config_of(row), {}, request, cpu_machine());
    ASSERT_TRUE(asked);
    expect_explained(*asked);
    if (row.format == KvFormat::kBf16) continue;
    const Status can = plan::check_runnable(*asked, request);
    ASSERT_FALSE(can);
    EXPECT_THAT(can.error().to_string(), HasSubstr(cat("kv_format: needs one of f32, bf16, found ",
                                                       format_name(row.format))));
  }
}

}  // namespace
}  // namespace topknot::test
