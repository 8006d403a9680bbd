// Every preset as headers of full size: opened, counted, measured, and compared with what model/
// asks of such files.
#include "synth/presets.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/strings.h"
#include "model/config.h"
#include "model/vocabulary.h"
#include "model/weights.h"
#include "synth/synth.h"

namespace topknot::synth {
namespace {

namespace fs = std::filesystem;

constexpr double kGiB = 1024.0 * 1024 * 1024;

struct Expected {
  std::string_view name;
  uint64_t blocks;
  uint64_t tensors;
  size_t parts;
  double min_gib, max_gib;  // apparent
  double parameters;        // in 1e9, within 1 %
};

void PrintTo(const Expected& expected, std::ostream* out) { *out << expected.name; }

// Sizes of published files (GiB): GLM-5 UD-Q4_K_XL 402, UD-Q2_K_XL of GLM-5.3 236; Q4_K_M of
// DeepSeek-V3 377, of V2-Lite 9.7, of Kimi-K2 578, of GLM-4.7-Flash 17. `parameters` is models.md 7
// and the published counts.
constexpr Expected kExpected[] = {
    {"tiny", 4, 90, 1, 0.004, 0.02, 0.01325},
    {"small", 6, 136, 1, 0.05, 0.2, 0.207},
    {"bench-1g", 10, 228, 1, 0.8, 1.2, 1.6},
    {"bench", 12, 274, 1, 2.0, 2.4, 3.86},
    {"glm-5-ud-q4_k_xl", 79, 1809, 10, 395, 410, 753.9},
    {"glm-5-ud-q2_k_xl", 79, 1809, 7, 230, 242, 753.9},
    {"glm-5.2-ud-q4_k_xl", 79, 1809, 10, 395, 410, 753.9},
    {"deepseek-v3.2-q4_k_m", 62, 1418, 9, 370, 390, 685},
    {"deepseek-v3-q4_k_m", 61, 1086, 9, 365, 385, 671},
    {"deepseek-v2-lite-q4_k_m", 27, 377, 1, 9, 10.5, 15.7},
    {"kimi-k2-q4_k_m", 61, 1096, 13, 560, 600, 1026},
    {"glm-4.7-flash-q4_k_m", 47, 844, 1, 16, 18.5, 29.9},
};

class Presets : public testing::TestWithParam<Expected> {
 protected:
  Presets() {
    std::string pattern = (fs::temp_directory_path() / "topknot_presets_XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
  }
  ~Presets() override { fs::remove_all(directory_); }

  Result<Summary> make(int64_t max_layers = kMaxLayers) {
    auto preset = find_preset(GetParam().name);
    if (!preset) return preset.error();
    preset->shape.layers = std::min(preset->shape.layers, max_layers);
    Request request{.shape = preset->shape, .types = preset->types, .output = {}};
    request.output.split = preset->split;
    request.output.headers_only = true;
    request.path = (directory_ / "model").string();
    request.quiet = true;
    shape_ = preset->shape;
    return make_model(request);
  }

  fs::path directory_;
  ModelShape shape_;
};

TEST_P(Presets, HeadersOnlyIsTheModelAtItsFullSize) {
  const auto made = make();
  ASSERT_TRUE(made) << made.error().to_string();
  const Expected& expected = GetParam();
  EXPECT_EQ(made->parts.size(), expected.parts);
  EXPECT_GE(static_cast<double>(made->bytes), expected.min_gib * kGiB);
  EXPECT_LE(static_cast<double>(made->bytes), expected.max_gib * kGiB);
  EXPECT_NEAR(static_cast<double>(made->parameters) / 1e9, expected.parameters,
              0.01 * expected.parameters);
  EXPECT_EQ(made->tensors, expected.tensors);
  uint64_t used = 0;
  for (const auto& part : made->parts) {
    struct stat status = {};
    ASSERT_EQ(::stat(part.path.c_str(), &status), 0);
    EXPECT_EQ(static_cast<uint64_t>(status.st_size), part.bytes);
    used += static_cast<uint64_t>(status.st_blocks) * 512;
    // Any part leads to the whole model.
    const auto model = gguf::ModelFile::open(part.path);
    ASSERT_TRUE(model) << model.error().to_string();
    EXPECT_EQ(model->tensors().size(), made->tensors);
    EXPECT_EQ(model->total_bytes(), made->bytes);
    EXPECT_EQ(model->find_key(cat(shape_.architecture, ".block_count"))->as_unsigned(),
              expected.blocks);
  }
  EXPECT_LT(used, 16 << 20);
}

TEST_P(Presets, TokenizerIsValidAndHasTheVocabulary) {
  const auto made = make();
  ASSERT_TRUE(made) << made.error().to_string();
  const auto model = gguf::ModelFile::open(made->parts[0].path);
  ASSERT_TRUE(model) << model.error().to_string();
  const auto words = model::read_tokenizer(*model);
  ASSERT_TRUE(words) << words.error().to_string();
  EXPECT_EQ(words->vocab_size(), shape_.vocab);
  const std::string text = "The answer is 42, \xC3\xA9t\xC3\xA9 \xE4\xBD\xA0\xE5\xA5\xBD!\n";
  const auto ids = words->encode(text, tokenizer::ParseSpecial::kNo);
  ASSERT_TRUE(ids) << ids.error().to_string();
  EXPECT_EQ(words->decode(*ids, true), text);
  EXPECT_LT(ids->size(), text.size());
  EXPECT_FALSE(words->stop_ids().empty());
  const auto chat = model::read_chat_template(*model);
  ASSERT_TRUE(chat);
  EXPECT_NE(chat->find("add_generation_prompt"), std::string::npos);
}

void expect_config(const model::ModelConfig& config, const ModelShape& shape) {
  EXPECT_EQ(config.architecture, shape.architecture);
  EXPECT_EQ(config.layers, shape.layers);
  EXPECT_EQ(config.nextn_layers, shape.nextn);
  EXPECT_EQ(config.hidden, shape.hidden);
  EXPECT_EQ(config.heads, shape.heads);
  EXPECT_EQ(config.q_lora_rank, shape.q_lora);
  EXPECT_EQ(config.qk_nope_head_dim, shape.qk_nope);
  EXPECT_EQ(config.v_head_dim, shape.v_head);
  EXPECT_EQ(config.router.experts, shape.experts);
  EXPECT_EQ(config.router.used, shape.experts_used);
  EXPECT_EQ(config.rope.yarn.has_value(), shape.yarn_factor > 0);
  ASSERT_EQ(config.indexer.has_value(), shape.index_topk > 0);
  if (config.indexer) {
    EXPECT_EQ(config.indexer->full_layers, full_index_layers(shape));
  }
}

// Architectures that model/ does not offer must be refused by name; they are compared as soon as
// it does.
void expect_reads_and_binds(const std::string& path, const ModelShape& shape) {
  const auto file = gguf::ModelFile::open(path);
  ASSERT_TRUE(file) << file.error().to_string();
  const auto config = model::read_config(*file);
  if (!config) {
    EXPECT_EQ(config.error().code, Code::kUnsupported) << config.error().to_string();
    EXPECT_NE(config.error().what.find(shape.architecture), std::string::npos);
    EXPECT_NE(shape.architecture, "glm-dsa");
    return;
  }
  expect_config(*config, shape);
  const auto bound = model::bind_weights(*file, *config);
  EXPECT_TRUE(bound) << bound.error().to_string();
}

// With few layers: binding reads every norm, and the system reads ahead around each.
TEST_P(Presets, ModelReadsTheConfigurationAndBindsTheTensors) {
  const auto made = make(/*max_layers=*/8);
  ASSERT_TRUE(made) << made.error().to_string();
  expect_reads_and_binds(made->parts.back().path, shape_);
}

INSTANTIATE_TEST_SUITE_P(Each, Presets, testing::ValuesIn(kExpected), [](const auto& each) {
  std::string name(each.param.name);
  for (char& c : name) c = c == '-' || c == '.' ? '_' : c;
  return name;
});

class Glm5 : public Presets {};

TEST_P(Glm5, AllBlocksBind) {
  const auto made = make();
  ASSERT_TRUE(made) << made.error().to_string();
  expect_reads_and_binds(made->parts[4].path, shape_);
}

INSTANTIATE_TEST_SUITE_P(Q4, Glm5, testing::Values(kExpected[4]));

TEST(PresetList, HasAnExpectationForEach) {
  ASSERT_EQ(presets().size(), std::size(kExpected));
  for (size_t i = 0; i < std::size(kExpected); ++i) EXPECT_EQ(presets()[i].name, kExpected[i].name);
}

TEST(PresetList, NearNamesAreOffered) {
  const auto none = find_preset("glm-5-ud-q4-k-xl");
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kNotFound);
  EXPECT_NE(none.error().fix.find("glm-5-ud-q4_k_xl"), std::string::npos);
}

TEST(Glm5Published, HasTheCensusOfTheRealFiles) {
  const auto preset = find_preset("glm-5-ud-q4_k_xl");
  ASSERT_TRUE(preset);
  Request request{.shape = preset->shape, .types = preset->types, .output = {}};
  request.output.split = preset->split;
  request.path = "m";
  const auto plan = plan_model(request);
  ASSERT_TRUE(plan) << plan.error().to_string();
  EXPECT_EQ(plan->parts[0].tensors, 0U);
  for (size_t i = 1; i < plan->parts.size(); ++i) EXPECT_LE(plan->parts[i].bytes, 50'000'000'000U);
  EXPECT_EQ(plan->type_tensors.at(tensor::DType::kF32), 709U);
  EXPECT_EQ(plan->type_tensors.at(tensor::DType::kQ4_K), 152U + 76 - 6 + 1);
}

}  // namespace
}  // namespace topknot::synth
