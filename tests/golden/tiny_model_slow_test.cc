// The trained model against transformers, what takes long: the scalar reference path on long
// prompts, perplexity, and recall through sparse attention.
#include <gtest/gtest.h>

#include <cmath>

#include "golden/tiny_checks.h"

namespace topknot::test {
namespace {

// T-2.5 in small: facts planted far beyond the top 256 keys are found.
void check_recall(const RunnerOptions& path, const std::string& label) {
  const auto runner = open_tiny(path, 8192);
  size_t answers = 0;
  for (const RecallSequence& sequence : must(load_recall())) {
    size_t golden = 0;
    for (const auto& answer : sequence.answers) golden += answer.correct_sparse;
    ASSERT_EQ(golden, sequence.answers.size());
    EXPECT_EQ(right_answers(runner.get(), sequence), golden) << label << " " << sequence.name;
    const auto tokens = static_cast<int64_t>(sequence.ids.size());
    EXPECT_EQ(runner->stats().queries, tokens);
    EXPECT_EQ(runner->stats().sparse_queries, tokens - 256) << sequence.name;
    answers += golden;
  }
  EXPECT_EQ(answers, 55U);
}

TEST(TinyModelSlow, RecallOnTheUserPath) { check_recall(user_path(), "user"); }
TEST(TinyModelSlow, RecallOnTheFastPath) { check_recall(fast_path(), "fast f32"); }

TEST(TinyModelSlow, LongPromptsOnTheReferencePath) {
  const auto runner = open_tiny(reference_path(), 4224);
  for (const Prompt& prompt : must(load_prompts())) {
    if (prompt.ids.size() < 100) continue;
    check_prompt(runner.get(), prompt, {kTinyOtherKeysError, 0}, "reference");
    EXPECT_GT(runner->stats().sparse_queries, 0);
  }
}

TEST(TinyModelSlow, SelectionsOnTheReferencePath) {
  check_selections(must(load_indexer()), open_tiny(reference_path(), 1024).get(), "reference");
}

struct NllLimits {
  double token = 0;  // of one position
  double mean = 0;   // of all: the logarithm of the perplexity
};

void check_perplexity(RunnerOptions path, bool dense, const NllLimits& limits,
                      const std::string& label) {
  path.dense = dense;
  const auto runner = open_tiny(path, 2048);
  double sum = 0, golden_sum = 0;
  size_t count = 0;
  Difference worst;
  for (const PerplexitySequence& sequence : must(load_perplexity())) {
    const std::vector<double> got = nll_of(runner.get(), sequence);
    const std::vector<float>& want = dense ? sequence.nll_dense : sequence.nll_sparse;
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) {
      worst.take(count, i, static_cast<float>(got[i]), want[i]);
      sum += got[i];
      golden_sum += static_cast<double>(want[i]);
    }
    ++count;
    EXPECT_EQ(runner->stats().sparse_queries, dense ? 0 : 2048 - 256);
  }
  ASSERT_EQ(count, 7U);
  const double tokens = 7 * 2048;
  std::printf("%s: perplexity %.4f, golden %.4f\n", label.c_str(), std::exp(sum / tokens),
              std::exp(golden_sum / tokens));
  expect_within(worst, limits.token, label + " nll of a token");
  expect_at_most(std::fabs(sum - golden_sum) / tokens, limits.mean, label + " log perplexity");
}

TEST(TinyModelSlow, PerplexityOnTheFastPath) {
  check_perplexity(fast_path(), true, {nll_error(kTinyLogitError), nll_error(kTinyLogitError) / 10},
                   "fast f32 dense");
  check_perplexity(fast_path(), false,
                   {nll_error(kTinyOtherKeysError), nll_error(kTinyLogitError) / 10},
                   "fast f32 sparse");
}

TEST(TinyModelSlow, PerplexityOnTheUserPath) {
  const double token = nll_error(kTinyOtherKeysError + bf16_state_error(kLayers) * 40);
  for (const bool dense : {false, true}) {
    check_perplexity(user_path(), dense, {token, token / 120},
                     dense ? "user dense" : "user sparse");
  }
}

}  // namespace
}  // namespace topknot::test
