// T-1.4: whatever a plan accepts runs: random shapes of the family, types, formats and options.
#include <cmath>
#include <random>

#include "base/strings.h"
#include "plan/planned_model.h"
#include "synth/blocks.h"
#include "topknot/engine.h"

namespace topknot::test {
namespace {

using synth::ModelShape;

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  int64_t among(std::initializer_list<int64_t> values) {
    return values.begin()[engine_() % values.size()];
  }
  std::string among(std::initializer_list<const char*> values) {
    return values.begin()[engine_() % values.size()];
  }
  bool chance(uint64_t one_in) { return engine_() % one_in == 0; }
  uint64_t next() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

ModelShape random_shape(Random& random) {
  ModelShape s;
  s.architecture = random.among({"glm-dsa", "glm-dsa", "deepseek32", "deepseek2"});
  s.layers = random.among({1, 2, 3, 5});
  s.nextn = random.chance(4) ? 1 : 0;
  s.hidden = random.among({32, 96, 256});
  s.vocab = random.among({600, 1000});
  s.context = random.among({64, 4096, 1'048'576});
  s.heads = random.among({1, 2, 3, 7, 8});
  s.q_lora = random.among({32, 64, 256});
  s.kv_lora = random.among({32, 64, 512});
  s.qk_nope = random.among({32, 64, 192});
  s.qk_rope = random.among({0, 2, 32, 64});
  s.v_head = random.among({32, 64, 256});
  s.dense_ffn = random.among({32, 160, 512});
  s.leading_dense = random.among({0, 1, 5});
  s.experts = random.among({0, 4, 12});
  s.experts_used = random.among({1, 2, 4});
  s.shared_experts = random.among({0, 1, 2});
  s.expert_ffn = random.among({32, 64, 256});
  s.fused_gate_up = random.chance(3);
  s.weights_norm = random.chance(2);
  s.index_topk = random.among({1, 2, 5, 8, 64});
  s.index_heads = random.among({1, 2, 5});
  s.index_head_dim = random.among({64, 128});
  s.index_schedule = random.among({"all", "all", "2,1", "4,3"});
  s.tied_output = random.chance(3);
  if (s.architecture == "deepseek2") {
    s.index_topk = 0;
    s.q_lora = random.among({0, 64});
    s.fused_kv_b = random.chance(2);
  }
  return s;
}

std::vector<synth::TypeRule> random_types(Random& random) {
  std::vector<tensor::DType> types;
  for (const tensor::DTypeInfo& each : tensor::dtypes()) {
    if (synth::can_generate(each.type)) types.push_back(each.type);
  }
  std::vector<synth::TypeRule> rules;
  for (const char* pattern : {"", "_exps", "attn_", "indexer", "token_embd"}) {
    // Most files are of types that this version computes with.
    tensor::DType type = types[random.next() % types.size()];
    while (!random.chance(8) && !tensor::dtype_info(type).decoded) {
      type = types[random.next() % types.size()];
    }
    rules.push_back({pattern, type});
  }
  return rules;
}

EngineOptions random_options(Random& random, const std::string& path) {
  EngineOptions options;
  options.model = path;
  options.threads = static_cast<int>(random.among({1, 2, 3}));
  options.context = random.among({0, 33, 64});
  options.ubatch = random.among({1, 7, 64, 512});
  options.dtype = random.among({"auto", "f32", "bf16"});
  options.kv_cache_dtype = random.among({"auto", "f32", "bf16", "bf16", "q8_0", "fp8"});
  options.attention_backend = random.among({"", "", "cpu_simd", "cpu_reference"});
  options.kernels = random.among({"auto", "auto", "portable", "reference", "avx512"});
  options.dense = random.chance(4);
  options.quiet = true;
  return options;
}

bool plan_accepts(const EngineOptions& options) {
  const auto model = OpenModel::open(options.model);
  plan::PlanRequest request;
  request.dtype = options.dtype;
  request.kv_cache_dtype = options.kv_cache_dtype;
  request.attention_backend = options.attention_backend;
  request.kernels = options.kernels;
  request.device = "cpu";
  request.dense = options.dense;
  request.context = options.context;
  request.ubatch = options.ubatch;
  request.threads = options.threads;
  const auto plan = model->plan(request, device::machine_of(device::host_facts(), {}));
  return plan && plan::check_runnable(*plan, request);
}

enum class Outcome : uint8_t { kNoShape, kRefused, kRan };

Outcome try_one(uint64_t seed) {
  Random random(seed);
  const Folder folder;
  synth::Request request;
  request.shape = random_shape(random);
  request.types = random_types(random);
  request.path = folder.file("model");
  request.quiet = true;
  if (!synth::plan_model(request)) return Outcome::kNoShape;
  const EngineOptions options = random_options(random, write_model(request));
  const bool accepted = plan_accepts(options);
  auto engine = Engine::open(options);
  EXPECT_EQ(static_cast<bool>(engine), accepted)
      << (engine ? "the plan refused" : engine.error().to_string());
  if (!engine) return Outcome::kRefused;
  GenerateRequest ask;
  for (int32_t i = 0; i < 20; ++i) ask.prompt.push_back(i * 7 % 256);
  ask.max_tokens = 3;
  ask.ignore_eos = true;
  const auto done = engine->generate(ask);
  EXPECT_TRUE(done) << done.error().to_string();
  const auto scores = engine->score(ask.prompt);
  EXPECT_TRUE(scores);
  if (scores) {
    for (const float each : *scores) EXPECT_TRUE(std::isfinite(each));
  }
  return Outcome::kRan;
}

TEST(AcceptedPlans, RunTheirFirstForward) {
  constexpr uint64_t kSeeds = 160;
  int ran = 0;
  int refused = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(cat("seed ", seed));
    const Outcome outcome = try_one(seed);
    ran += outcome == Outcome::kRan;
    refused += outcome == Outcome::kRefused;
  }
  EXPECT_GE(ran, 10) << "too few shapes are accepted for the test to mean much";
  EXPECT_GE(refused, 5);
}

}  // namespace
}  // namespace topknot::test
