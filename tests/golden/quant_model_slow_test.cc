// The trained model as llama.cpp's Q4_K_M, and in a mix of 15 types: recall and perplexity against
// the quant-tiny-glm-dsa-*.json.
#include <gtest/gtest.h>

#include <cmath>

#include "golden/tiny_checks.h"

namespace topknot::test {
namespace {

struct QuantFile {
  const char* name;
  size_t right;          // of the 55 stored recall questions
  double sparse, dense;  // perplexity over eight sequences of 2,048
};
constexpr double kQ8Sparse = 20.56727929763771;
constexpr double kQ8Dense = 20.3088626976231;

class QuantModelSlow : public testing::TestWithParam<QuantFile> {
 protected:
  static std::string model() { return std::string("tiny-glm-dsa-") + GetParam().name; }
  static std::unique_ptr<ModelRunner> open(RunnerOptions path, int64_t context) {
    path.context = context;
    return open_model(data_path("models/" + model() + ".gguf"), path);
  }
};

TEST_P(QuantModelSlow, Prompts) {
  const auto all = must(load_quant_prompts(model()));
  const std::string name = GetParam().name;
  check_exact(open(reference_path(), 256).get(), prompts_in(all, kShort), name + " reference");
  check_exact(open(fast_path(), 4224).get(), prompts_in(all, kLong), name + " fast f32");
  check_rounded(open(user_path(), 4224).get(), all, name + " user");
}

TEST_P(QuantModelSlow, AnswersTheRecallQuestionsOfTheGolden) {
  const auto runner = open(user_path(), 8192);
  size_t right = 0;
  for (const RecallSequence& sequence : must(load_recall())) {
    right += right_answers(runner.get(), sequence);
    EXPECT_GT(runner->stats().sparse_queries, 0);
  }
  EXPECT_EQ(right, GetParam().right);
}

// The JSON has the perplexity over eight sequences of which seven are stored. If the eighth loses
// between nothing and twice the mean by the quantisation, the mean of the seven is within a seventh
// of that of the eight.
TEST_P(QuantModelSlow, PerplexityRisesAsTheGoldenSays) {
  for (const bool dense : {false, true}) {
    const double golden =
        dense ? std::log(GetParam().dense / kQ8Dense) : std::log(GetParam().sparse / kQ8Sparse);
    RunnerOptions path = user_path();
    path.dense = dense;
    const auto runner = open(path, 2048);
    double rise = 0;
    for (const PerplexitySequence& sequence : must(load_perplexity())) {
      const std::vector<float>& q8 = dense ? sequence.nll_dense : sequence.nll_sparse;
      const std::vector<double> got = nll_of(runner.get(), sequence);
      for (size_t i = 0; i < got.size(); ++i) rise += got[i] - static_cast<double>(q8[i]);
    }
    rise /= 7 * 2048;
    std::printf("rise of the log perplexity %.4f, golden over eight %.4f\n", rise, golden);
    EXPECT_NEAR(rise, golden, golden / 7);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files, QuantModelSlow,
    testing::Values(QuantFile{"q4_k_m", 55, 22.477444732516968, 22.205889189430753},
                    QuantFile{"mixed", 54, 24.738227140154237, 24.387479427115903}),
    [](const auto& file) { return std::string(file.param.name); });

}  // namespace
}  // namespace topknot::test
