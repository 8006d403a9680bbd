// Checks of the trained model that several tests make, on several files and paths.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "golden/compare.h"
#include "golden/limits.h"

namespace topknot::test {

inline constexpr int64_t kLayers = 3;
inline constexpr int64_t kLongestSum = 576;  // products of a score

inline std::unique_ptr<ModelRunner> open_tiny(RunnerOptions path, int64_t context) {
  path.context = context;
  return open_model(bundled_model_path(), path);
}

// Logits of the last position, the ten best of the positions the golden names, and the greedy
// continuation up to the first step that the error could turn.
struct PromptLimits {
  double absolute = 0;
  double relative = 0;  // of the largest logit of the row, added

  double of(std::span<const float> row) const {
    float largest = 0;
    for (const float logit : row) largest = std::max(largest, std::fabs(logit));
    return absolute + relative * static_cast<double>(largest);
  }
};
inline void check_prompt(ModelRunner* runner, const Prompt& prompt, const PromptLimits& limits,
                         const std::string& label) {
  SCOPED_TRACE(label + " " + prompt.name);
  runner->reset();
  const Matrix logits = runner->feed(prompt.ids, prompt.top10_positions);
  const std::span<const float> last = logits.row(logits.rows - 1);
  const double limit = limits.of(prompt.last_logits);
  expect_within(difference(last, prompt.last_logits), limit, label + " " + prompt.name + " last");

  Difference logprobs;
  for (size_t i = 0; i < logits.rows; ++i) {
    const double row_limit = limits.of(logits.row(i));
    for (size_t k = 10 * i; k < 10 * i + 10; ++k) {
      const auto got = static_cast<float>(-nll(logits.row(i), prompt.top10_ids[k]));
      const float want = prompt.top10_logprobs[k];
      logprobs.take(i, k % 10, got, want);
      ASSERT_NEAR(got, want, 2 * row_limit) << "position " << prompt.top10_positions[i];
    }
  }
  std::printf("[ measured ] %-58s %.3g\n", (label + " " + prompt.name + " top 10").c_str(),
              logprobs.largest);

  const std::vector<int32_t> greedy = runner->greedy(last, prompt.greedy.size());
  size_t comparable = 0;
  while (comparable < greedy.size() &&
         static_cast<double>(prompt.greedy_margin[comparable]) > 2 * limit) {
    ++comparable;
  }
  size_t same = 0;
  while (same < greedy.size() && greedy[same] == prompt.greedy[same]) ++same;
  std::printf("[ measured ] %-58s %zu of %zu comparable\n",
              (label + " " + prompt.name + " greedy tokens").c_str(), same, comparable);
  EXPECT_GE(same, comparable);
}

// The model fed the golden's continuation: each step whose margin exceeds the error has the same
// best token, also behind a step that could have turned.
inline void check_forced(ModelRunner* runner, const Prompt& prompt, const PromptLimits& limits,
                         const std::string& label) {
  std::vector<int32_t> ids = prompt.ids;
  ids.insert(ids.end(), prompt.greedy.begin(), prompt.greedy.end() - 1);
  std::vector<int32_t> wanted(prompt.greedy.size());
  std::iota(wanted.begin(), wanted.end(), static_cast<int32_t>(prompt.ids.size()) - 1);
  runner->reset();
  const Matrix logits = runner->feed(ids, wanted);
  size_t same = 0, comparable = 0;
  for (size_t i = 0; i < logits.rows; ++i) {
    const bool equal = argmax(logits.row(i)) == prompt.greedy[i];
    same += equal;
    if (static_cast<double>(prompt.greedy_margin[i]) <= 2 * limits.of(logits.row(i))) continue;
    ++comparable;
    EXPECT_TRUE(equal) << label << " " << prompt.name << " step " << i << ", margin "
                       << prompt.greedy_margin[i];
  }
  std::printf("[ measured ] %-58s %zu of %zu, %zu comparable\n",
              (label + " " + prompt.name + " forced tokens").c_str(), same, logits.rows,
              comparable);
}

// Selected sets and scores of recall-1k with fp32 rows.
inline void check_selections(const IndexerGolden& golden, ModelRunner* runner,
                             const std::string& label) {
  // The float64 program finds 0, 2 and 4 rows with another key than the golden (README).
  constexpr size_t kMostOtherRows[] = {2, 4, 8};
  Trace trace;
  runner->feed(golden.ids, {}, &trace);
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    const IndexerLayer& want = golden.layers[static_cast<size_t>(layer)];
    const std::string name = label + " layer " + std::to_string(layer);
    const auto limit = [&](const std::vector<float>& scores) {
      float largest = 0;
      for (const float s : scores) largest = std::max(largest, std::fabs(s));
      return float_state_error(layer + 1, kLongestSum) * static_cast<double>(largest);
    };
    expect_within(difference(trace.scores[layer].back(), want.scores_last), limit(want.scores_last),
                  name + " scores of the last row");
    expect_within(difference(trace.scores[layer][400], want.scores_row400),
                  limit(want.scores_row400), name + " scores of row 400");
    size_t others = 0;
    for (size_t t = 0; t < golden.ids.size(); ++t) {
      if (trace.selected[layer][t] == want.selected.keys(t)) continue;
      ++others;
      EXPECT_LE(static_cast<double>(want.margin[t]), 2 * limit(trace.scores[layer][t]))
          << name << " row " << t;
    }
    expect_at_most(static_cast<double>(others),
                   static_cast<double>(kMostOtherRows[static_cast<size_t>(layer)]),
                   name + " rows with another key");
  }
}

// Prompts of these lengths on one path.
struct PromptRange {
  size_t shortest = 0, longest = SIZE_MAX;
};
inline constexpr PromptRange kShort{0, 100};    // dense: fewer tokens than the top 256
inline constexpr PromptRange kMiddle{0, 1100};  // with recall-1k
inline constexpr PromptRange kLong{1000, SIZE_MAX};
inline std::vector<Prompt> prompts_in(std::vector<Prompt> prompts, PromptRange range) {
  std::erase_if(prompts, [&](const Prompt& p) {
    return p.ids.size() < range.shortest || p.ids.size() > range.longest;
  });
  EXPECT_FALSE(prompts.empty());
  return prompts;
}

// fp32 rows: exact but for rounding, and for keys near the cut of long prompts.
inline void check_exact(ModelRunner* runner, const std::vector<Prompt>& prompts,
                        const std::string& label) {
  for (const Prompt& prompt : prompts) {
    const bool sparse = prompt.ids.size() > 256;
    check_prompt(runner, prompt, {sparse ? kTinyOtherKeysError : kTinyLogitError, 0}, label);
    EXPECT_EQ(runner->stats().sparse_queries > 0, sparse);
  }
}
// bf16 rows.
inline void check_rounded(ModelRunner* runner, const std::vector<Prompt>& prompts,
                          const std::string& label) {
  const PromptLimits limits{kTinyLogitError, bf16_state_error(kLayers)};
  for (const Prompt& prompt : prompts) {
    check_prompt(runner, prompt, limits, label);
    check_forced(runner, prompt, limits, label);
  }
}

// Answers of a recall sequence that are right.
inline size_t right_answers(ModelRunner* runner, const RecallSequence& sequence) {
  std::vector<int32_t> wanted;
  for (const auto& answer : sequence.answers) {
    for (int32_t i = answer.first; i < answer.end; ++i) wanted.push_back(i - 1);
  }
  runner->reset();
  const Matrix logits = runner->feed(sequence.ids, wanted);
  size_t right = 0, row = 0;
  for (const auto& answer : sequence.answers) {
    bool all = true;
    for (int32_t i = answer.first; i < answer.end; ++i, ++row) {
      all = all && argmax(logits.row(row)) == sequence.ids[static_cast<size_t>(i)];
    }
    right += all;
  }
  return right;
}

// Negative log likelihoods of ids[1:].
inline std::vector<double> nll_of(ModelRunner* runner, const PerplexitySequence& sequence) {
  std::vector<double> out;
  runner->reset();
  runner->feed_each({sequence.ids.data(), sequence.ids.size() - 1},
                    [&](size_t i, std::span<const float> logits) {
                      out.push_back(nll(logits, sequence.ids[i + 1]));
                    });
  return out;
}

}  // namespace topknot::test
