#include "model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/test_support.h"

namespace topknot::model {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

ModelConfig read(TestFile file) {
  const gguf::ModelFile model = file.open();
  auto config = read_config(model);
  EXPECT_TRUE(config) << config.error().to_string();
  return config ? *config : ModelConfig{};
}

Error refused(TestFile file) {
  const gguf::ModelFile model = file.open();
  auto config = read_config(model);
  EXPECT_FALSE(config) << "taken";
  if (config) return {};
  EXPECT_EQ(config.error().where, "test.gguf");
  EXPECT_FALSE(config.error().fix.empty());
  return config.error();
}

TEST(Config, ReadsEveryNumber) {
  const ModelConfig c = read({});
  EXPECT_EQ(c.architecture, "glm-dsa");
  EXPECT_EQ(c.layers, 2);
  EXPECT_EQ(c.hidden, 32);
  EXPECT_EQ(c.vocab, 40);
  EXPECT_EQ(c.heads, 2);
  EXPECT_EQ(c.q_lora_rank, 24);
  EXPECT_EQ(c.kv_lora_rank, 36);
  EXPECT_EQ(c.qk_nope_head_dim, 16);
  EXPECT_EQ(c.qk_rope_head_dim, 8);
  EXPECT_EQ(c.v_head_dim, 20);
  EXPECT_EQ(c.latent_width(), 44);
  EXPECT_FALSE(c.is_moe_layer(0));
  EXPECT_TRUE(c.is_moe_layer(1));
  EXPECT_EQ(c.router.experts, 4);
  EXPECT_EQ(c.router.gating, ops::Gating::kSigmoid);
  EXPECT_TRUE(c.router_bias);
  EXPECT_FLOAT_EQ(c.softmax_scale, 1 / std::sqrt(24.0f));
  EXPECT_EQ(c.rope.flavour, ops::RopeFlavour::kInterleaved);
  ASSERT_TRUE(c.indexer);
  EXPECT_EQ(c.indexer->heads, 3);
  EXPECT_EQ(c.indexer->head_dim, 28);
  EXPECT_EQ(c.indexer->topk, 4);
  EXPECT_EQ(c.indexer->rope_flavour, ops::RopeFlavour::kInterleaved);
  EXPECT_FLOAT_EQ(c.indexer->norm_eps, 1e-6f);
  EXPECT_THAT(c.sparse_reason, HasSubstr("glm-dsa.attention.indexer.top_k = 4"));
}

TEST(Config, MissingKeysAreNamedAllAtOnce) {
  const std::vector<std::string> keys = {"block_count",
                                         "context_length",
                                         "embedding_length",
                                         "feed_forward_length",
                                         "expert_used_count",
                                         "expert_feed_forward_length",
                                         "attention.head_count",
                                         "attention.kv_lora_rank",
                                         "attention.key_length_mla",
                                         "attention.value_length_mla",
                                         "attention.layer_norm_rms_epsilon",
                                         "rope.dimension_count",
                                         "rope.freq_base",
                                         "attention.indexer.head_count",
                                         "attention.indexer.key_length"};
  TestFile file;
  for (const std::string& key : keys) file.drop(key);
  const Error error = refused(file);
  EXPECT_EQ(error.code, Code::kCorrupt);
  for (const std::string& key : keys) {
    const std::string name = key.ends_with("_mla") ? key.substr(0, key.size() - 4) : key;
    if (name == "attention.value_length") continue;  // its older name is asked for
    EXPECT_THAT(error.why, HasSubstr("glm-dsa." + name + " is absent"));
  }
}

TEST(Config, ArchitecturesAreRefusedByName) {
  for (const auto& [name, remark] : {std::pair{"deepseek4", "not planned"},
                                     {"glm4moe", "not MLA"},
                                     {"glm5-next", "not planned"},
                                     {"llama", "not known"}}) {
    TestFile file;
    file.add_string("general.architecture", name);
    const Error error = refused(file);
    EXPECT_EQ(error.code, Code::kUnsupported);
    EXPECT_THAT(error.what, HasSubstr(std::string("'") + name + "'"));
    EXPECT_THAT(error.why, HasSubstr(remark));
    EXPECT_THAT(error.fix, HasSubstr("glm-dsa"));
  }
}

TEST(Config, ImpossibleValuesAreRefused) {
  const auto why = [](const std::string& key, auto value) {
    TestFile file;
    file.add(key, value);
    return refused(file).why;
  };
  EXPECT_THAT(why("block_count", uint32_t{0}), HasSubstr("block_count is 0; needed: 1 to 4096"));
  EXPECT_THAT(why("embedding_length", uint32_t{1 << 21}), HasSubstr("needed: 1 to 1048576"));
  EXPECT_THAT(why("attention.head_count", int32_t{-1}), HasSubstr("non-negative integer"));
  EXPECT_THAT(why("attention.head_count", 2.5f), HasSubstr("non-negative integer"));
  EXPECT_THAT(why("rope.dimension_count", uint32_t{24}), HasSubstr("must be below the key width"));
  EXPECT_THAT(why("rope.dimension_count", uint32_t{7}), HasSubstr("must be even"));
  EXPECT_THAT(why("rope.freq_base", std::nanf("")), HasSubstr("is needed"));
  EXPECT_THAT(why("nextn_predict_layers", uint32_t{2}), HasSubstr("at least one main layer"));
  EXPECT_THAT(why("expert_used_count", uint32_t{5}), HasSubstr("needed: 1 to 4"));
  EXPECT_THAT(why("expert_group_count", uint32_t{3}), HasSubstr("cannot form 3 groups"));
  EXPECT_THAT(why("attention.indexer.key_length", uint32_t{4}), HasSubstr("do not fit"));
  // The indexer's queries come from the latent of the main queries.
  EXPECT_THAT(why("attention.q_lora_rank", uint32_t{0}), HasSubstr("the indexer projects"));
}

TEST(Config, ExpertsWithoutALayerAreNotRead) {
  TestFile file;
  file.add("leading_dense_block_count", uint32_t{2});
  file.add("expert_shared_count", uint32_t{65536});
  file.add("expert_feed_forward_length", uint32_t{1 << 20});
  const ModelConfig c = read(file);
  EXPECT_EQ(c.router.experts, 0);
  EXPECT_EQ(c.expert_ffn * c.shared_experts, 0);
}

TEST(Config, IndexerIsAbsentWithoutTopK) {
  TestFile file;
  file.drop("attention.indexer.top_k");
  EXPECT_FALSE(read(file).indexer);
  EXPECT_THAT(read(file).sparse_reason, HasSubstr("top_k is absent"));
  file.add("attention.indexer.top_k", uint32_t{0});
  EXPECT_THAT(read(file).sparse_reason, HasSubstr("top_k is 0"));
}

// --- which layers have an indexer of their own (models.md 4.5)

TestFile layers(uint32_t count) {
  TestFile file;
  file.add("block_count", count);
  return file;
}

std::vector<int> full_layers(const ModelConfig& c) {
  std::vector<int> out;
  for (int i = 0; i < c.layers; ++i) {
    if (c.has_own_indexer(i)) out.push_back(i);
  }
  return out;
}

TEST(Schedule, TypesInEverySpelling) {
  TestFile file = layers(4);
  file.add_flags("attention.indexer.types", {1, 0, 0, 1});
  EXPECT_THAT(full_layers(read(file)), ElementsAre(0, 3));
  file.add_array<uint32_t>("attention.indexer.types", {1, 0, 1, 0});
  EXPECT_THAT(full_layers(read(file)), ElementsAre(0, 2));
  file.add_array<int32_t>("attention.indexer.types", {1, 1, 0, 0});
  EXPECT_THAT(full_layers(read(file)), ElementsAre(0, 1));
  file.add_strings("attention.indexer.types", {"full", "shared", "shared", "full"});
  EXPECT_THAT(full_layers(read(file)), ElementsAre(0, 3));
  // The MTP block may be listed too.
  file.add("block_count", uint32_t{5});
  file.add("nextn_predict_layers", uint32_t{1});
  file.add_strings("attention.indexer.types", {"full", "shared", "full", "full", "full"});
  EXPECT_THAT(full_layers(read(file)), ElementsAre(0, 2, 3));
}

TEST(Schedule, TypesThatSayNothingAreRefused) {
  TestFile file = layers(4);
  file.add_flags("attention.indexer.types", {1, 0, 0});
  EXPECT_THAT(refused(file).why, HasSubstr("needed: 4 booleans"));
  file.add_strings("attention.indexer.types", {"full", "half", "full", "full"});
  EXPECT_THAT(refused(file).why, HasSubstr("\"full\"/\"shared\""));
  file.add_array<int32_t>("attention.indexer.types", {1, 2, 0, 0});
  EXPECT_THAT(refused(file).why, HasSubstr("attention.indexer.types"));
  file.add("attention.indexer.types", true);
  EXPECT_THAT(refused(file).why, HasSubstr("attention.indexer.types"));
  file.add_flags("attention.indexer.types", {0, 1, 1, 1});
  EXPECT_THAT(refused(file).why, HasSubstr("layer 0 reuses a selection that no layer before"));
}

TEST(Schedule, FrequencyAndOffset) {
  for (const char* key : {"attention.indexer.top_k_freq", "attention.indexer.top_k_frequency"}) {
    TestFile file = layers(12);
    file.add(key, uint32_t{4});
    file.add("attention.indexer.skip_top_k_offset", uint32_t{3});
    EXPECT_THAT(full_layers(read(file)), ElementsAre(0, 1, 2, 6, 10));
    file.drop("attention.indexer.skip_top_k_offset");  // 2 when absent
    EXPECT_THAT(full_layers(read(file)), ElementsAre(0, 1, 5, 9));
  }
}

TEST(Schedule, AbsentTypesFollowTheContext) {
  TestFile file = layers(79);
  file.add("nextn_predict_layers", uint32_t{1});
  file.add("context_length", uint32_t{202'752});
  EXPECT_EQ(full_layers(read(file)).size(), 78U);
  EXPECT_THAT(joined(read(file).notes), HasSubstr("an indexer in every layer"));
  file.add("context_length", uint32_t{1'048'576});
  const std::vector<int> full = full_layers(read(file));
  EXPECT_EQ(full.size(), 21U);  // GLM-5.2: 21 full, 57 shared
  for (const int i : full) EXPECT_TRUE(i < 2 || (i - 2) % 4 == 0) << i;
  EXPECT_THAT(joined(read(file).notes), HasSubstr("GLM-5.2 schedule"));
}

// --- rope (values of models.md 3.4)

RopeConfig rope(double base, std::optional<Yarn> yarn = {}) {
  return {.freq_base = base, .dim = 64, .yarn = yarn};
}
void expect_relative(double got, double want) { EXPECT_NEAR(got / want, 1, 1e-8); }

TEST(InverseFrequencies, DeepSeekYarn) {
  const auto inv = inverse_frequencies(rope(1e4, Yarn{40, 4096, 32, 1, 0.1}));
  ASSERT_EQ(inv.size(), 32U);
  expect_relative(inv[0], 1);
  expect_relative(inv[5], 0.237137371);
  expect_relative(inv[10], 0.0562341325);
  expect_relative(inv[11], 0.0390069266);
  expect_relative(inv[16], 0.0055);
  expect_relative(inv[22], 1.77827941e-4);
  expect_relative(inv[23], 3.33380358e-5);
  expect_relative(inv[31], 3.33380358e-6);
}

TEST(InverseFrequencies, KimiYarnWithOneBeta) {
  const auto inv = inverse_frequencies(rope(5e4, Yarn{32, 4096, 1, 1, 0.1}));
  expect_relative(inv[19], 1.62175991e-3);
  expect_relative(inv[20], 3.61404677e-5);
  expect_relative(inv[31], 8.76441291e-7);
}

TEST(InverseFrequencies, GlmWithoutScaling) {
  expect_relative(inverse_frequencies(rope(8e6))[1], 0.608525018);
  expect_relative(inverse_frequencies(rope(8e6))[31], 2.05414726e-7);
  expect_relative(inverse_frequencies(rope(1e6))[1], 0.649381632);
  expect_relative(inverse_frequencies(rope(1e6))[31], 1.53992653e-6);
}

TEST(Rope, SoftmaxScaleUnderYarn) {
  TestFile file;
  file.add("attention.key_length_mla", uint32_t{192});
  file.add("rope.dimension_count", uint32_t{64});
  file.add("attention.indexer.key_length", uint32_t{128});
  file.add_string("glm-dsa.rope.scaling.type", "yarn");
  file.add("rope.scaling.factor", 40.0f);
  file.add("rope.scaling.original_context_length", uint32_t{4096});
  EXPECT_THAT(joined(read(file).notes), HasSubstr("not rescaled"));
  EXPECT_NEAR(read(file).softmax_scale, 1 / std::sqrt(192.0), 1e-7);
  file.add("rope.scaling.yarn_log_multiplier", 0.1f);
  EXPECT_NEAR(read(file).softmax_scale, 0.1352338, 1e-6);  // DeepSeek-V3
  EXPECT_DOUBLE_EQ(read(file).rope.yarn->beta_fast, 32);
  file.add_string("glm-dsa.rope.scaling.type", "linear");
  EXPECT_THAT(refused(file).why, HasSubstr("'linear'; none and yarn are understood"));
}

}  // namespace
}  // namespace topknot::model
