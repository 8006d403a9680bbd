// Whole models with data: bound and decoded, the same whatever the threads and the split, refusals.
#include "synth/synth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/strings.h"
#include "model/config.h"
#include "model/vocabulary.h"
#include "model/weights.h"
#include "synth/presets.h"
#include "tensor/dequantize.h"

namespace topknot::synth {
namespace {

namespace fs = std::filesystem;
using tensor::DType;
using testing::HasSubstr;

class Synth : public testing::Test {
 protected:
  Synth() {
    std::string pattern = (fs::temp_directory_path() / "topknot_synth_XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    request_.path = path("m");
    request_.quiet = true;
    request_.threads = 2;
  }
  ~Synth() override { fs::remove_all(directory_); }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  void rule(const std::string& text) {
    auto parsed = TypeRule::parse(text);
    ASSERT_TRUE(parsed) << parsed.error().to_string();
    request_.types.push_back(*parsed);
  }

  // Makes the model and opens it; the path of its first part.
  Result<gguf::ModelFile> make() {
    request_.output.force = true;
    const auto made = make_model(request_);
    if (!made) return made.error();
    return gguf::ModelFile::open(made->parts.front().path);
  }

  fs::path directory_;
  Request request_;
};

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void expect_values(const gguf::ModelFile& file, const TensorPlan& plan) {
  const gguf::TensorInfo* tensor = file.find_tensor(plan.spec.name);
  ASSERT_NE(tensor, nullptr) << plan.spec.name;
  std::vector<float> x(tensor->elements());
  tensor::dequantize_row(tensor->type, tensor->data, x.size(), x.data());
  double mean = 0;
  double squares = 0;
  for (const float each : x) {
    ASSERT_TRUE(std::isfinite(each)) << plan.spec.name;
    mean += each;
    squares += (double{each} - plan.values.mean) * (double{each} - plan.values.mean);
  }
  const auto n = static_cast<double>(x.size());
  if (n < 1000) return;
  EXPECT_NEAR(std::sqrt(squares / n), plan.values.std, 0.2 * plan.values.std) << plan.spec.name;
  EXPECT_NEAR(mean / n, plan.values.mean, 0.2 * plan.values.std) << plan.spec.name;
}

int64_t pick(std::mt19937& random, std::vector<int64_t> choices) {
  return choices[std::uniform_int_distribution<size_t>(0, choices.size() - 1)(random)];
}

// Small, and odd in every way the family allows.
ModelShape random_shape(const std::string& architecture, std::mt19937& random) {
  ModelShape s;
  s.architecture = architecture;
  s.layers = pick(random, {1, 2, 3, 5});
  s.nextn = pick(random, {0, 1});
  s.hidden = pick(random, {64, 96, 256});
  s.vocab = pick(random, {300, 512, 1000});
  s.heads = pick(random, {1, 3, 4});
  s.q_lora = architecture == "deepseek2" ? pick(random, {0, 64}) : pick(random, {64, 256});
  s.kv_lora = pick(random, {64, 128, 512});
  s.qk_nope = pick(random, {32, 96, 192});
  s.qk_rope = pick(random, {16, 64});
  s.v_head = pick(random, {32, 128});
  s.fused_kv_b = architecture == "deepseek2" && pick(random, {0, 1}) == 1;
  s.fused_gate_up = pick(random, {0, 1}) == 1;
  s.dense_ffn = pick(random, {96, 256});
  s.leading_dense = pick(random, {0, 1, 2});
  s.experts = pick(random, {0, 4, 8});
  s.experts_used = 2;
  s.shared_experts = pick(random, {0, 1, 2});
  s.expert_ffn = pick(random, {32, 160, 256});
  s.expert_groups = pick(random, {1, 2});
  s.expert_groups_used = s.expert_groups;
  s.gating = architecture == "glm-dsa" || pick(random, {0, 1}) == 0 ? "sigmoid" : "softmax";
  s.yarn_factor = architecture == "glm-dsa" ? 0 : 40;
  s.index_topk = architecture == "deepseek2" ? 0 : 16;
  s.index_heads = 4;
  s.index_head_dim = 64;
  s.index_schedule = pick(random, {0, 1}) == 0 ? "all" : "3,1";
  s.tied_output = pick(random, {0, 1}) == 1;
  return s;
}

class RandomShapes : public Synth, public testing::WithParamInterface<const char*> {};

TEST_P(RandomShapes, BindAndDecodeToTheWantedValues) {
  const std::vector<DType> types = [] {
    std::vector<DType> out;
    for (const auto& info : tensor::dtypes()) {
      if (can_generate(info.type)) out.push_back(info.type);
    }
    return out;
  }();
  std::mt19937 random(5);
  for (int round = 0; round < 24; ++round) {
    request_.shape = random_shape(GetParam(), random);
    request_.seed = static_cast<uint64_t>(round);
    const DType type = types[static_cast<size_t>(round) % types.size()];
    SCOPED_TRACE(cat("round ", round, " ", tensor::dtype_name(type)));
    request_.types.clear();
    rule(std::string(tensor::dtype_name(type)));
    const auto file = make();
    ASSERT_TRUE(file) << file.error().to_string();
    std::vector<TensorPlan> plans = plan_tensors(request_.shape, 1);
    EXPECT_EQ(file->tensors().size(), plans.size());
    for (const TensorPlan& plan : plans) expect_values(*file, plan);
    const auto words = model::read_tokenizer(*file);
    ASSERT_TRUE(words) << words.error().to_string();
    const auto config = model::read_config(*file);
    if (!config && config.error().code == Code::kUnsupported) continue;  // to come in model/
    ASSERT_TRUE(config) << config.error().to_string();
    const auto bound = model::bind_weights(*file, *config);
    EXPECT_TRUE(bound) << bound.error().to_string();
  }
}

INSTANTIATE_TEST_SUITE_P(Each, RandomShapes, testing::Values("glm-dsa", "deepseek32", "deepseek2"),
                         [](const auto& each) {
                           std::string name(each.param);
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST_F(Synth, TheSameRequestGivesTheSameBytesWhateverTheThreads) {
  request_.shape = find_preset("tiny")->shape;
  request_.types = find_preset("tiny")->types;
  request_.threads = 1;
  ASSERT_TRUE(make());
  const std::string one = bytes_of(path("m.gguf"));
  request_.threads = 3;
  ASSERT_TRUE(make());
  EXPECT_TRUE(one == bytes_of(path("m.gguf")));
  request_.seed = 2;
  ASSERT_TRUE(make());
  EXPECT_FALSE(one == bytes_of(path("m.gguf")));
  EXPECT_EQ(one.size(), bytes_of(path("m.gguf")).size());
}

TEST_F(Synth, PartsHoldTheTensorsOfTheWhole) {
  request_.shape = find_preset("tiny")->shape;
  request_.types = find_preset("tiny")->types;
  const auto whole = make();
  ASSERT_TRUE(whole) << whole.error().to_string();
  request_.path = path("split");
  request_.output.split = {.max_tensors = 10, .max_bytes = 3'000'000, .metadata_only_first = true};
  const auto parts = make();
  ASSERT_TRUE(parts) << parts.error().to_string();
  EXPECT_GT(parts->parts().size(), 9U);
  EXPECT_EQ(parts->parts()[0].tensors, 0U);
  ASSERT_EQ(parts->tensors().size(), whole->tensors().size());
  for (const gguf::TensorInfo& tensor : whole->tensors()) {
    const gguf::TensorInfo* same = parts->find_tensor(tensor.name);
    ASSERT_NE(same, nullptr);
    EXPECT_EQ(same->type, tensor.type);
    ASSERT_EQ(same->bytes, tensor.bytes);
    EXPECT_EQ(std::memcmp(same->data, tensor.data, tensor.bytes), 0) << tensor.name;
  }
  for (const gguf::KeyValue& entry : whole->metadata()) {
    const gguf::Value* same = parts->find_key(entry.key);
    ASSERT_NE(same, nullptr) << entry.key;
    EXPECT_EQ(same->to_string(), entry.value.to_string());
  }
}

TEST_F(Synth, TheLastRuleCountsAndRowsThatDoNotFitGetTheNearestType) {
  request_.shape = find_preset("tiny")->shape;
  request_.shape.expert_ffn = 96;
  rule("q6_k");
  rule("exps=iq2_xs");
  rule("ffn_up_exps=Q4_K");
  rule("attn_k_b=q4_k");
  const auto file = make();
  ASSERT_TRUE(file) << file.error().to_string();
  const auto type = [&](const char* name) { return file->find_tensor(name)->type; };
  EXPECT_EQ(type("blk.1.ffn_gate_exps.weight"), DType::kIQ2_XS);
  EXPECT_EQ(type("blk.1.ffn_up_exps.weight"), DType::kQ4_K);
  EXPECT_EQ(type("blk.1.ffn_down_exps.weight"), DType::kIQ4_NL);  // rows of 96
  EXPECT_EQ(type("blk.1.ffn_down_shexp.weight"), DType::kQ8_0);   // rows of 96
  EXPECT_EQ(type("blk.1.attn_k_b.weight"), DType::kQ5_0);         // rows of 192
  EXPECT_EQ(type("blk.1.attn_norm.weight"), DType::kF32);         // never a norm
  EXPECT_EQ(type("blk.1.attn_output.weight"), DType::kQ6_K);
  request_.types.clear();
  rule("q4_k");
  request_.shape.expert_ffn = 40;
  const auto odd = make();
  ASSERT_TRUE(odd) << odd.error().to_string();
  EXPECT_EQ(odd->find_tensor("blk.1.ffn_down_exps.weight")->type, DType::kF16);
}

TEST_F(Synth, RouterStaysF32UnlessNamed) {
  request_.shape = find_preset("tiny")->shape;
  const auto file = make();
  ASSERT_TRUE(file) << file.error().to_string();
  EXPECT_EQ(file->find_tensor("blk.1.ffn_gate_inp.weight")->type, DType::kF32);
  EXPECT_EQ(file->find_tensor("blk.1.attn_output.weight")->type, DType::kF16);
  rule("ffn_gate_inp=bf16");
  EXPECT_EQ(make()->find_tensor("blk.1.ffn_gate_inp.weight")->type, DType::kBF16);
}

TEST_F(Synth, ScheduleIsWrittenAndSharedLayersHaveNoIndexer) {
  request_.shape = find_preset("tiny")->shape;
  request_.shape.layers = 7;
  request_.shape.nextn = 1;
  request_.shape.index_schedule = "4,3";
  const auto file = make();
  ASSERT_TRUE(file) << file.error().to_string();
  for (const int block : {0, 1, 2, 6, 7}) {
    EXPECT_NE(file->find_tensor(cat("blk.", block, ".indexer.proj.weight")), nullptr) << block;
  }
  for (const int block : {3, 4, 5}) {
    EXPECT_EQ(file->find_tensor(cat("blk.", block, ".indexer.proj.weight")), nullptr) << block;
  }
  const auto config = model::read_config(*file);
  ASSERT_TRUE(config) << config.error().to_string();
  const std::vector<bool> wanted = {true, true, true, false, false, false, true};
  EXPECT_EQ(config->indexer->full_layers, wanted);
  request_.shape.index_schedule = "FSSFSSF";
  const auto letters = make();
  ASSERT_TRUE(letters) << letters.error().to_string();
  EXPECT_EQ(letters->find_tensor("blk.1.indexer.proj.weight"), nullptr);
}

TEST_F(Synth, CancellingLeavesNothing) {
  request_.shape = find_preset("tiny")->shape;
  const std::atomic<bool> cancel = true;
  request_.cancel = &cancel;
  const auto made = make_model(request_);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kCancelled);
  EXPECT_TRUE(fs::is_empty(directory_));
}

TEST_F(Synth, AllThatIsWrongWithAShapeIsSaid) {
  request_.shape.layers = 0;
  request_.shape.qk_rope = 7;
  request_.shape.experts_used = 99;
  request_.shape.q_lora = 0;
  request_.shape.vocab = 10;
  const auto made = make_model(request_);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Code::kInvalidArgument);
  for (const char* name : {"layers", "qk_rope", "experts_used", "q_lora", "vocab"}) {
    EXPECT_THAT(made.error().why, HasSubstr(name));
  }
  EXPECT_TRUE(fs::is_empty(directory_));
}

TEST_F(Synth, GainAndThreadsAreBounded) {
  for (const double gain : {0.0, -1.0, 1e9, std::nan("")}) {
    request_.gain = gain;
    EXPECT_FALSE(plan_model(request_)) << gain;
  }
  request_.gain = 1;
  request_.threads = 0;
  EXPECT_FALSE(plan_model(request_));
}

TEST(TypeRules, Refusals) {
  EXPECT_THAT(TypeRule::parse("x=q9_k").error().fix, HasSubstr("iq2_xs"));
  EXPECT_THAT(TypeRule::parse("x=q8_k").error().why, HasSubstr("q8_k"));
  EXPECT_THAT(TypeRule::parse("(=q4_k").error().why, HasSubstr("regular expression"));
  EXPECT_FALSE(TypeRule::parse("=q4_k"));
  EXPECT_FALSE(TypeRule::parse(""));
}

TEST(Shapes, EveryArchitectureHasADefault) {
  for (const char* architecture : {"glm-dsa", "deepseek32", "deepseek2"}) {
    const ModelShape shape = default_shape(architecture);
    EXPECT_EQ(shape.architecture, architecture);
    const auto status = check_shape(shape);
    EXPECT_TRUE(status) << status.error().to_string();
  }
  EXPECT_FALSE(check_shape(default_shape("llama")));
}

TEST(Shapes, FromJson) {
  ModelShape shape;
  ASSERT_TRUE(read_shape(R"({"layers": 9, "weights-scale": 1.5, "gating": "softmax",
                             "tied_output": true})",
                         "s.json", &shape));
  EXPECT_EQ(shape.layers, 9);
  EXPECT_EQ(shape.weights_scale, 1.5);
  EXPECT_EQ(shape.gating, "softmax");
  EXPECT_TRUE(shape.tied_output);
  const auto refusal = [&](const char* json) {
    const auto status = read_shape(json, "s.json", &shape);
    EXPECT_FALSE(status) << json;
    return status ? std::string() : status.error().to_string();
  };
  EXPECT_THAT(refusal(R"({"layer": 9})"), HasSubstr("layers"));
  EXPECT_THAT(refusal(R"({"layers": "nine"})"), HasSubstr("an integer"));
  EXPECT_THAT(refusal(R"({"layers": [9]})"), HasSubstr("an integer"));
  EXPECT_THAT(refusal(R"({"layers": 1e99})"), HasSubstr("s.json"));
  EXPECT_THAT(refusal("[]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(refusal("{"), HasSubstr("not JSON"));
}

TEST(Sizes, AreDecimalUnlessBinaryIsNamed) {
  EXPECT_EQ(*parse_size("48G"), 48'000'000'000U);
  EXPECT_EQ(*parse_size("1.5GiB"), 1'610'612'736U);
  EXPECT_EQ(*parse_size("1000"), 1000U);
  for (const char* bad : {"", "G", "-1G", "0", "1X", "1e30", "1 G", "nan", "inf"}) {
    EXPECT_FALSE(parse_size(bad)) << bad;
  }
}

}  // namespace
}  // namespace topknot::synth
