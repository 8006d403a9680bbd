// The trained model as llama.cpp's Q4_K_M: recall and perplexity against
// quant-tiny-glm-dsa-q4_k_m.json.
#include <gtest/gtest.h>

#include <cmath>

#include "golden/tiny_checks.h"

namespace topknot::test {
namespace {

std::unique_ptr<ModelRunner> open_quant(RunnerOptions path, int64_t context) {
  path.context = context;
  return open_model(data_path("models/tiny-glm-dsa-q4_k_m.gguf"), path);
}

TEST(QuantModelSlow, Prompts) {
  const auto all = must(load_quant_prompts("tiny-glm-dsa-q4_k_m"));
  check_exact(open_quant(reference_path(), 256).get(), prompts_in(all, kShort), "q4_k_m reference");
  check_exact(open_quant(fast_path(), 4224).get(), prompts_in(all, kLong), "q4_k_m fast f32");
  check_rounded(open_quant(user_path(), 4224).get(), all, "q4_k_m user");
}

TEST(QuantModelSlow, AnswersEveryStoredRecallQuestion) {
  const auto runner = open_quant(user_path(), 8192);
  size_t right = 0;
  for (const RecallSequence& sequence : must(load_recall())) {
    right += right_answers(runner.get(), sequence);
    EXPECT_GT(runner->stats().sparse_queries, 0);
  }
  EXPECT_EQ(right, 55U);
}

// The JSON has the perplexity over eight sequences of which seven are stored: 22.4774 sparse and
// 22.2059 dense here, 20.5673 and 20.3089 for Q8_0. If the eighth loses between nothing and twice
// the mean by the quantisation, the mean of the seven is within a seventh of that of the eight.
TEST(QuantModelSlow, PerplexityRisesAsTheGoldenSays) {
  for (const bool dense : {false, true}) {
    const double golden = dense ? std::log(22.205889189430753 / 20.3088626976231)
                                : std::log(22.477444732516968 / 20.56727929763771);
    RunnerOptions path = user_path();
    path.dense = dense;
    const auto runner = open_quant(path, 2048);
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

}  // namespace
}  // namespace topknot::test
