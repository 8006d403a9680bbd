// The micro models: random weights in bf16, by llama.cpp's converter; goldens of transformers and
// of the float64 program (tests/data/golden/README.md).
#include <gtest/gtest.h>

#include <algorithm>

#include "golden/compare.h"
#include "golden/limits.h"
#include "ops/cpu/kernels.h"

namespace topknot::test {
namespace {

struct Micro {
  const char* name;
  size_t untied;  // rows before the first whose cut has a tie
  size_t others;  // rows behind them that differ in transformers
};

// torch.topk promises no order among equal scores: from the first tie on a row may differ, and so
// may every later row that attends it. Here all of them do; the float64 golden, which decides ties
// as the engine does, covers them.
constexpr Micro kMicros[] = {
    {"micro-glm-dsa", 41, 55}, {"micro-glm-dsa-shared", 42, 54}, {"micro-deepseek-v32", 45, 31}};
// Dense attention: every row can be compared.
constexpr const char* kDenseMicros[] = {"micro-deepseek-v2-lite", "micro-deepseek-v3",
                                        "micro-glm4-moe-lite"};

std::vector<RunnerOptions> exact_paths() {
  std::vector<RunnerOptions> paths = {reference_path()};
  for (const ops::Kernels* kernels : ops::available_kernels()) {
    paths.push_back(fast_path());
    paths.back().kernels = kernels->name;
  }
  for (RunnerOptions& path : paths) path.context = 96;
  return paths;
}

std::unique_ptr<ModelRunner> open_micro(std::string_view name, const RunnerOptions& path) {
  return open_model(data_path("models/" + std::string(name) + "-bf16.gguf"), path);
}

// Rows whose logits differ by more than the limit.
size_t rows_beyond(const Matrix& got, const Matrix& want, size_t begin, double limit) {
  size_t rows = 0;
  for (size_t t = begin; t < want.rows; ++t) {
    rows += difference(got.row(t), want.row(t)).largest > limit;
  }
  return rows;
}

TEST(MicroModels, EveryRowOfTheFloat64Golden) {
  for (const Micro& micro : kMicros) {
    const ReferenceGolden golden = must(load_reference(micro.name));
    for (const RunnerOptions& path : exact_paths()) {
      const std::string label = std::string(micro.name) + " " + path.kernels;
      SCOPED_TRACE(label);
      const auto runner = open_micro(micro.name, path);
      Trace trace;
      const Matrix logits = runner->feed_all(golden.ids, &trace);
      Difference scores, attention, out;
      size_t other_sets = 0, tied = 0, close = 0;
      for (size_t i = 0; i < golden.layers.size(); ++i) {
        const auto layer = static_cast<int64_t>(i);
        const ReferenceLayer& want = golden.layers[i];
        ASSERT_EQ(runner->config().has_own_indexer(layer), want.full);
        attention =
            std::max(attention, relative_difference(trace.at(layer, "attn_out"), want.attn_out));
        out = std::max(out, relative_difference(trace.at(layer, "out"), want.out));
        for (size_t t = 0; want.full && t < golden.ids.size(); ++t) {
          const std::vector<float>& row = trace.scores[layer][t];
          for (size_t j = 0; j < row.size(); ++j) scores.take(t, j, row[j], want.scores.row(t)[j]);
          other_sets += trace.selected[layer][t] != want.selected.keys(t);
          tied += want.tied[t];
          close += want.margin[t] < 2 * kFloatScoreError;
        }
      }
      // One choice has a margin within the limit of two scores; what was measured is below it.
      EXPECT_LE(close, 1U);
      EXPECT_GT(tied, 0U);  // and the lower index is chosen where scores tie
      EXPECT_EQ(other_sets, 0U);
      expect_within(scores, kFloatScoreError, label + " scores");
      const double limit = float_state_error(runner->config().layers, 96);
      expect_within(attention, limit, label + " attn_out");
      expect_within(out, limit, label + " out");
      expect_within(difference(logits, golden.logits), kFloatLogitError, label + " logits");
    }
  }
}

TEST(MicroModels, RowsBeforeTheFirstTieOfTransformers) {
  for (const Micro& micro : kMicros) {
    const MicroGolden golden = must(load_micro(micro.name));
    const ReferenceGolden decided = must(load_reference(micro.name));
    for (const RunnerOptions& path : exact_paths()) {
      const std::string label = std::string(micro.name) + " transformers " + path.kernels;
      Trace trace;
      const Matrix logits = open_micro(micro.name, path)->feed_all(golden.ids, &trace);
      expect_within(difference(logits, golden.logits, 0, micro.untied), kLatentEpsError,
                    label + " logits");
      const size_t layers = golden.hidden.size() - 1;
      Difference hidden = difference(trace.at(-1, "embed"), golden.hidden[0]);
      EXPECT_EQ(hidden.largest, 0) << "the embedding is copied";
      for (size_t i = 0; i + 1 < layers; ++i) {  // the last is after the final norm
        hidden = std::max(hidden, relative_difference(trace.at(static_cast<int64_t>(i), "out"),
                                                      golden.hidden[i + 1], micro.untied));
      }
      expect_within(hidden, kLatentEpsError, label + " hidden");
      const size_t others = rows_beyond(logits, golden.logits, micro.untied, kLatentEpsError);
      EXPECT_EQ(others, rows_beyond(decided.logits, golden.logits, micro.untied, kLatentEpsError));
      expect_at_most(static_cast<double>(others), static_cast<double>(micro.others),
                     label + " rows with ties decided otherwise");
    }
  }
}

TEST(MicroModels, EveryRowOfTheDenseFamily) {
  for (const std::string name : kDenseMicros) {
    const MicroGolden golden = must(load_micro(name));
    for (const RunnerOptions& path : exact_paths()) {
      const auto runner = open_micro(name, path);
      EXPECT_FALSE(runner->config().indexer.has_value());
      const Matrix logits = runner->feed_all(golden.ids);
      EXPECT_EQ(runner->stats().sparse_queries, 0);
      expect_within(difference(logits, golden.logits), kLatentEpsError, name + " " + path.kernels);
    }
  }
}

}  // namespace
}  // namespace topknot::test
