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

TEST(TinyModelSlow, LongPrompts) {
  const auto prompts = prompts_in(must(load_prompts()), kLong);
  check_exact(open_tiny(reference_path(), 4224).get(), prompts, "reference");
  check_exact(open_tiny(fast_path(), 4224).get(), prompts, "fast f32");
  check_rounded(open_tiny(user_path(), 4224).get(), prompts, "user");
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

// Rounding changes an expert in 36 of these 14,336 rows. Nothing bounds a logit there: no more
// tokens than that may exceed what rounding alone can do.
constexpr double kMostRowsBeyond = 36.0 / 14336;

TEST(TinyModelSlow, PerplexityOnTheUserPath) {
  for (const bool dense : {false, true}) {
    RunnerOptions path = user_path();
    path.dense = dense;
    const auto runner = open_tiny(path, 2048);
    double sum = 0, squares = 0, tokens = 0, beyond = 0;
    for (const PerplexitySequence& sequence : must(load_perplexity())) {
      const std::vector<float>& want = dense ? sequence.nll_dense : sequence.nll_sparse;
      const std::span<const int32_t> ids(sequence.ids);
      const PromptLimits limits{kTinyOtherKeysError, bf16_state_error(kLayers)};
      runner->reset();
      runner->feed_each(ids.first(ids.size() - 1), [&](size_t i, std::span<const float> logits) {
        const double error = nll(logits, ids[i + 1]) - static_cast<double>(want[i]);
        beyond += std::fabs(error) > nll_error(limits.of(logits));
        sum += error;
        squares += error * error;
        ++tokens;
      });
    }
    const std::string label = dense ? "user dense" : "user sparse";
    expect_at_most(beyond / tokens, kMostRowsBeyond, label + " share of tokens beyond");
    // Errors of either sign: their mean is within four standard deviations of 0, and of half the
    // mean square, by which an error in logits raises the negative log likelihood.
    const double mean_square = squares / tokens;
    expect_at_most(std::fabs(sum / tokens), 4 * std::sqrt(mean_square / tokens) + mean_square,
                   label + " log perplexity");
    // The limit of a logit of size 10 is three standard deviations.
    expect_at_most(std::sqrt(mean_square), bf16_state_error(kLayers) * 10 / 3,
                   label + " nll, root mean square");
  }
}

}  // namespace
}  // namespace topknot::test
