// Random models whose goldens come from a float64 program that shares no code with the engine and
// attends in the multi-head form (tests/data/golden/README.md).
// T-2.1 T-2.2 T-2.3 T-2.8 T-6.3 T-6.4
#include <gtest/gtest.h>

#include <algorithm>

#include "golden/compare.h"
#include "golden/limits.h"
#include "ops/cpu/kernels.h"

namespace topknot::test {
namespace {

std::vector<RunnerOptions> exact_paths() {
  std::vector<RunnerOptions> paths = {reference_path()};
  for (const ops::Kernels* kernels : ops::available_kernels()) {
    paths.push_back(fast_path());
    paths.back().kernels = kernels->name;
  }
  for (RunnerOptions& path : paths) path.context = 128;
  return paths;
}

std::string model(std::string_view name) {
  return data_path("models/" + std::string(name) + ".gguf");
}

constexpr int64_t kLongestSum = 96;  // products in a sum of these models: keys, heads * v

struct Case {
  const char* golden;
  const char* model;
  std::vector<std::string> overrides;
};

std::string top_k(int k) { return "glm-dsa.attention.indexer.top_k=int:" + std::to_string(k); }

// Files of a golden that is stored once.
std::vector<Case> all_cases() {
  return {
      {"interleaved-k2", "reference-interleaved", {top_k(2)}},
      {"interleaved-k4", "reference-interleaved", {}},
      {"interleaved-k8", "reference-interleaved", {top_k(8)}},
      {"interleaved-dense", "reference-interleaved", {top_k(96)}},
      {"half-split-k2", "reference-half-split", {top_k(2)}},
      {"half-split-k4", "reference-half-split", {}},
      {"half-split-k8", "reference-half-split", {top_k(8)}},
      {"interleaved-k4", "reference-fused-kv-b", {}},
      {"interleaved-k4", "reference-odd-names", {}},
      {"shared-k4", "reference-shared", {}},
      {"shared-k4", "reference-shared-duplicates", {}},
      {"schedule-glm52", "reference-schedule", {}},
      {"schedule-full", "reference-schedule", {"glm-dsa.context_length=int:202752"}},
  };
}

std::string label(const Case& c, const RunnerOptions& path, std::string_view what) {
  return std::string(c.model) + " " + c.golden + " " + path.kernels + " " + std::string(what);
}

// Scores of every scored row, and the selection of every row, of one layer.
void check_indexer(const ReferenceLayer& want, const Trace& got, int64_t layer, Difference* worst) {
  const auto& scores = got.scores.at(layer);
  const auto& selected = got.selected.at(layer);
  ASSERT_EQ(selected.size(), want.selected.rows);
  for (size_t t = 0; t < selected.size(); ++t) {
    for (size_t j = 0; j < scores[t].size(); ++j) {
      worst->take(t, j, scores[t][j], want.scores.row(t)[j]);
    }
    // No margin is below the error of a score, and ties go to the lower index here as there.
    ASSERT_GT(want.margin[t], 2 * kFloatScoreError);
    ASSERT_EQ(selected[t], want.selected.keys(t)) << "layer " << layer << " row " << t;
  }
}

TEST(ReferenceModels, ScoresSelectionsStatesAndLogits) {
  for (const Case& c : all_cases()) {
    const ReferenceGolden golden = must(load_reference(c.golden));
    for (const RunnerOptions& path : exact_paths()) {
      SCOPED_TRACE(label(c, path, ""));
      const auto runner = open_model(model(c.model), path, c.overrides);
      Trace trace;
      const Matrix logits = runner->feed_all(golden.ids, &trace);
      Difference scores, attention, out;
      for (size_t i = 0; i < golden.layers.size(); ++i) {
        const auto layer = static_cast<int64_t>(i);
        const ReferenceLayer& want = golden.layers[i];
        ASSERT_EQ(runner->config().has_own_indexer(layer), want.full) << "layer " << i;
        if (want.full) check_indexer(want, trace, layer, &scores);
        attention =
            std::max(attention, relative_difference(trace.at(layer, "attn_out"), want.attn_out));
        out = std::max(out, relative_difference(trace.at(layer, "out"), want.out));
      }
      const double limit = float_state_error(runner->config().layers, kLongestSum);
      expect_within(scores, kFloatScoreError, label(c, path, "scores"));
      expect_within(attention, limit, label(c, path, "attn_out"));
      expect_within(out, limit, label(c, path, "out"));
      expect_within(difference(logits, golden.logits), kFloatLogitError, label(c, path, "logits"));
      const int64_t visible = static_cast<int64_t>(golden.ids.size());
      EXPECT_EQ(runner->stats().sparse_queries, std::max<int64_t>(visible - golden.top_k, 0));
    }
  }
}

// The goldens are close to what is right and far from what each known mistake gives: with the
// mistake the test above fails.
TEST(ReferenceModels, MistakesWouldBeSeen) {
  for (const Case& c : all_cases()) {
    const ReferenceGolden golden = must(load_reference(c.golden));
    if (golden.wrong.empty()) continue;
    const auto runner = open_model(model(c.model), exact_paths().front(), c.overrides);
    const Matrix logits = runner->feed_all(golden.ids);
    EXPECT_GE(golden.wrong.size(), 5U);
    for (const auto& [mistake, wrong] : golden.wrong) {
      for (size_t i = 0; i < wrong.rows; ++i) {
        const auto row = static_cast<size_t>(golden.wrong_rows[i]);
        EXPECT_GT(difference(logits.row(row), wrong.row(i)).largest, kMistakeShows)
            << c.golden << " " << mistake << " row " << row;
      }
    }
  }
}

// The mistake made in the engine, by the keys it reads, gives what the reference says it gives:
// `wrong` arrays are made of the mistake they are named after.
TEST(ReferenceModels, SwappedFlavourIsTheSwappedGolden) {
  for (const auto& [golden_name, file, other] :
       {std::array<const char*, 3>{"interleaved-k4", "reference-interleaved", "false"},
        {"half-split-k4", "reference-half-split", "true"}}) {
    const ReferenceGolden golden = must(load_reference(golden_name));
    const auto runner =
        open_model(model(file), exact_paths().front(),
                   {std::string("glm-dsa.attention.indexer.rope_interleave=bool:") + other});
    const Matrix logits = runner->feed(golden.ids, golden.wrong_rows);
    expect_within(difference(logits, golden.wrong.at("wrong_flavour")), kFloatLogitError,
                  std::string(golden_name) + " with the flavour swapped");
    RunnerOptions dense = exact_paths().front();
    dense.dense = true;
    const Matrix all = open_model(model(file), dense)->feed(golden.ids, golden.wrong_rows);
    expect_within(difference(all, golden.wrong.at("dense")), kFloatLogitError,
                  std::string(golden_name) + " dense");
  }
}

// T-2.3: a query that sees no more than top-k keys gets the bits of dense attention, whether or not
// others of its step are sparse; one that sees more gets something else.
TEST(ReferenceModels, TopKOfTheLengthIsDense) {
  const std::vector<int32_t> ids = must(load_reference("interleaved-k4")).ids;
  for (RunnerOptions path : exact_paths()) {
    path.dense = true;
    const Matrix dense = open_model(model("reference-interleaved"), path)->feed_all(ids);
    path.dense = false;
    for (const int k : {1, 33, 64, 95, 96, 97, 4096}) {
      const auto runner = open_model(model("reference-interleaved"), path, {top_k(k)});
      const Matrix sparse = runner->feed_all(ids);
      const auto same = static_cast<size_t>(std::min(k, 96));
      Matrix head = sparse, dense_head = dense;
      for (Matrix* m : {&head, &dense_head}) {
        m->rows = same;
        m->values.resize(same * m->columns);
      }
      expect_same_bits(head, dense_head, path.kernels + " top-k " + std::to_string(k));
      if (k < 96) {
        EXPECT_GT(difference(sparse, dense, 95).largest, kFloatLogitError) << k;
      }
      EXPECT_EQ(runner->stats().sparse_queries, std::max(0, 96 - k));
    }
  }
}

// Files that say the same in different ways give the same bits.
TEST(ReferenceModels, EqualFilesGiveEqualLogits) {
  const std::vector<int32_t> ids = must(load_reference("interleaved-k4")).ids;
  for (const RunnerOptions& path : exact_paths()) {
    const auto logits = [&](const char* name) {
      return open_model(model(name), path)->feed_all(ids);
    };
    // T-2.8: indexer tensors of shared layers are not used, whatever they hold.
    expect_same_bits(logits("reference-shared-duplicates"), logits("reference-shared"), "shared");
    // Tensors that are no part of the model are not taken for one.
    const Matrix interleaved = logits("reference-interleaved");
    expect_same_bits(logits("reference-odd-names"), interleaved, "odd names");
    // T-6.3: a fused kv_b is multiplied transposed, so only the order of a sum differs.
    expect_within(difference(logits("reference-fused-kv-b"), interleaved), kFloatLogitError,
                  "fused and split kv_b " + path.kernels);
  }
}

// T-6.4: what is absent is explained.
TEST(ReferenceModels, DefaultsAreNoted) {
  const auto notes = [](std::string_view file, std::vector<std::string> overrides) {
    const auto runner = open_model(model(file), reference_path(), std::move(overrides));
    std::string all;
    for (const auto* list : {&runner->config().notes, &runner->bound().notes}) {
      for (const std::string& note : *list) all += note + "\n";
    }
    return all;
  };
  EXPECT_NE(notes("reference-schedule", {}).find("the GLM-5.2 schedule"), std::string::npos);
  EXPECT_NE(notes("reference-schedule", {"glm-dsa.context_length=int:202752"})
                .find("an indexer in every layer"),
            std::string::npos);
  EXPECT_NE(notes("reference-shared-duplicates", {}).find("of layers that run no indexer"),
            std::string::npos);
  EXPECT_NE(notes("reference-odd-names", {}).find("6 tensors are not used"), std::string::npos);
}

// Whether a token chose the same keys and experts in both runs, in every layer.
bool same_choices(const Trace& a, const Trace& b, size_t t) {
  for (const auto& [layer, rows] : a.selected) {
    if (rows[t] != b.selected.at(layer)[t]) return false;
  }
  for (const auto& [layer, ids] : a.experts) {
    const size_t used = ids.size() / a.values.begin()->second.rows;
    const auto begin = static_cast<ptrdiff_t>(t * used), end = begin + static_cast<ptrdiff_t>(used);
    if (!std::equal(ids.begin() + begin, ids.begin() + end, b.experts.at(layer).begin() + begin)) {
      return false;
    }
  }
  return true;
}

// With bf16 rows the fast code is the reference code with bf16 rows. What rounding may do to a
// logit is bounded on the trained model; random models change experts for it, which nothing bounds.
TEST(ReferenceModels, UserPathIsTheReferencePathWithRoundedRows) {
  for (const Case& c : all_cases()) {
    SCOPED_TRACE(c.golden);
    const ReferenceGolden golden = must(load_reference(c.golden));
    const auto run = [&](RunnerOptions path, Trace* trace) {
      path.context = 128;
      return open_model(model(c.model), path, c.overrides)->feed_all(golden.ids, trace);
    };
    RunnerOptions rounded_reference = reference_path();
    rounded_reference.cache = capability::KvFormat::kBf16;
    Trace got_trace, want_trace, exact_trace;
    const Matrix got = run(user_path(), &got_trace);
    const Matrix want = run(rounded_reference, &want_trace);
    const Matrix exact = run(reference_path(), &exact_trace);
    const Difference rounding = difference(want, exact, 0, SIZE_MAX, [&](size_t t) {
      return same_choices(want_trace, exact_trace, t);
    });
    EXPECT_GT(rounding.largest, kFloatLogitError);  // rounding does happen
    for (size_t t = 0; t < golden.ids.size(); ++t) {
      EXPECT_TRUE(same_choices(got_trace, want_trace, t)) << "row " << t;
    }
    expect_within(difference(got, want), kRoundingFlips * rounding.largest,
                  label(c, user_path(), "bf16 rows"));
  }
}

}  // namespace
}  // namespace topknot::test
