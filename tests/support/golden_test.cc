// That the goldens load and say what their README says: a wrong copy is found here, not in the
// engine.
#include "support/golden.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace topknot::test {
namespace {

template <class T>
T must(Result<T> result) {
  EXPECT_TRUE(result) << result.error().to_string();
  return std::move(result).value();
}

TEST(Golden, PromptsHoldTenOfEachKind) {
  for (const auto& prompts : {must(load_prompts()), must(load_quant_prompts("tiny-glm-dsa-q4_k_m")),
                              must(load_quant_prompts("tiny-glm-dsa-mixed"))}) {
    ASSERT_EQ(prompts.size(), 10u);
    for (const Prompt& prompt : prompts) {
      EXPECT_EQ(prompt.last_logits.size(), 3072u);
      EXPECT_EQ(size_t(prompt.top10_positions.back()), prompt.ids.size() - 1);
      // The best logit of the last position is its first logprob's id and the first greedy token.
      const auto best = std::max_element(prompt.last_logits.begin(), prompt.last_logits.end());
      EXPECT_EQ(best - prompt.last_logits.begin(), prompt.greedy.front()) << prompt.name;
      EXPECT_EQ(prompt.top10_ids[prompt.top10_ids.size() - 10], prompt.greedy.front());
      EXPECT_TRUE(std::ranges::all_of(prompt.greedy_margin, [](float m) { return m >= 0; }));
    }
  }
  EXPECT_EQ(must(load_prompts())[0].text, "In the beginning God created");
  EXPECT_FALSE(load_quant_prompts("none"));
}

TEST(Golden, LayerStatesAddUp) {
  const LayersGolden golden = must(load_layers());
  ASSERT_EQ(golden.layers.size(), 3u);
  ASSERT_EQ(golden.ids.size(), 57u);
  EXPECT_EQ(golden.logits.columns, 3072u);
  EXPECT_EQ(golden.layers[0].kv_latent.columns, 512u);
  EXPECT_TRUE(golden.layers[0].experts.empty());
  const Matrix* before = &golden.embed;
  for (const LayerStates& layer : golden.layers) {
    for (size_t i = 0; i < before->values.size(); ++i) {
      const float sum = before->values[i] + layer.attn_out.values[i] + layer.ffn_out.values[i];
      ASSERT_NEAR(sum, layer.out.values[i], 1e-4f * std::max(1.0f, std::fabs(sum)));
    }
    before = &layer.out;
  }
  for (size_t t = 0; t < golden.ids.size(); ++t) {
    EXPECT_NEAR(golden.layers[1].expert_weights[2 * t] + golden.layers[1].expert_weights[2 * t + 1],
                2.5f, 1e-5f);
  }
}

TEST(Golden, SelectedSetsHoldTopKVisibleKeys) {
  const IndexerGolden golden = must(load_indexer());
  ASSERT_EQ(golden.layers.size(), 3u);
  for (const IndexerLayer& layer : golden.layers) {
    for (size_t s = 0; s < golden.ids.size(); ++s) {
      const auto keys = layer.selected.keys(s);
      ASSERT_EQ(keys.size(), std::min<size_t>(s + 1, 256));
      ASSERT_LE(size_t(keys.back()), s);
      ASSERT_EQ(std::isinf(layer.margin[s]), s < 256);
    }
  }
}

TEST(Golden, PerplexitiesAreThoseOfTheReport) {
  const auto sequences = must(load_perplexity());
  ASSERT_EQ(sequences.size(), 7u);
  double sparse = 0, dense = 0;
  for (const auto& sequence : sequences) {
    ASSERT_EQ(sequence.ids.size(), 2049u);
    sparse += std::log(sequence.perplexity_sparse) / 7;
    dense += std::log(sequence.perplexity_dense) / 7;
  }
  EXPECT_NEAR(std::exp(sparse), 16.012, 1e-3);
  EXPECT_NEAR(std::exp(dense), 15.868, 1e-3);
}

TEST(Golden, RecallHoldsFiftyFiveRightAnswers) {
  size_t answers = 0, correct = 0;
  for (const auto& sequence : must(load_recall())) {
    answers += sequence.answers.size();
    for (const auto& answer : sequence.answers) correct += answer.correct_sparse;
  }
  EXPECT_EQ(answers, 55u);
  EXPECT_EQ(correct, 55u);
}

TEST(Golden, TextCases) {
  const TokenizerCases tokenizer = must(load_tokenizer_cases());
  EXPECT_EQ(tokenizer.parsed.size(), 166u);
  EXPECT_EQ(tokenizer.special_as_text.size(), 22u);
  const ChatCases chat = must(load_chat_cases());
  ASSERT_EQ(chat.cases.size(), 9u);
  EXPECT_THAT(chat.chat_template, testing::StartsWith("[gMASK]<sop>"));
  EXPECT_EQ(chat.cases[0].tools, "null");
  EXPECT_THAT(chat.cases[0].messages, testing::StartsWith("[{\"role\":\"user\",\"content\":"))
      << "keys keep their order";
}

TEST(Golden, MicroModels) {
  for (const char* name : {"micro-glm-dsa", "micro-glm-dsa-shared", "micro-deepseek-v32",
                           "micro-deepseek-v3", "micro-deepseek-v2-lite", "micro-glm4-moe-lite"}) {
    const MicroGolden golden = must(load_micro(name));
    EXPECT_EQ(golden.logits.columns, 512u);
    EXPECT_EQ(golden.hidden.size(), std::string_view(name) == "micro-glm-dsa-shared" ? 6u : 4u);
    EXPECT_EQ(golden.hidden[0].columns, 64u);
  }
}

TEST(Golden, ReferenceSetsAreTheBestScoresWithLowerIndexFirst) {
  for (const char* name : {"interleaved-k2", "interleaved-k4", "interleaved-k8", "half-split-k2",
                           "half-split-k4", "half-split-k8", "shared-k4", "schedule-glm52",
                           "schedule-full", "micro-glm-dsa", "micro-glm-dsa-shared"}) {
    const ReferenceGolden golden = must(load_reference(name));
    for (size_t l = 0; l < golden.layers.size(); ++l) {
      const ReferenceLayer& layer = golden.layers[l];
      for (size_t s = 0; s < golden.ids.size(); ++s) {
        ASSERT_EQ(layer.selected.keys(s).size(), std::min<size_t>(s + 1, size_t(golden.top_k)));
        if (!layer.full) {
          ASSERT_EQ(layer.selected.keys(s), golden.layers[l - 1].selected.keys(s));
          continue;
        }
        // In float32 a gap may close, so only rows with a margin or an exact tie can be judged.
        const auto scores = layer.scores.row(s);
        for (size_t out = 0; out <= s; ++out) {
          if (layer.selected.contains(s, out)) continue;
          for (const int32_t in : layer.selected.keys(s)) {
            const float gap = scores[size_t(in)] - scores[out];
            const bool wins = gap > 0 || (gap == 0 && size_t(in) < out);
            ASSERT_TRUE(wins || layer.margin[s] < 1e-6) << name << " layer " << l << " row " << s;
          }
        }
      }
    }
  }
}

size_t first_tied_row(const ReferenceGolden& golden) {
  size_t first = golden.ids.size();
  for (const ReferenceLayer& layer : golden.layers) {
    const auto tied = std::find(layer.tied.begin(), layer.tied.end(), 1);
    if (tied != layer.tied.end()) first = std::min(first, size_t(tied - layer.tied.begin()));
  }
  return first;
}

// Rows 32 and later select 32 keys, so this compares the indexers too.
TEST(Golden, ReferenceAgreesWithTransformersUpToTheFirstTie) {
  for (const auto& [name, tie] : std::initializer_list<std::pair<const char*, size_t>>{
           {"micro-glm-dsa", 40}, {"micro-glm-dsa-shared", 42}, {"micro-deepseek-v32", 45}}) {
    const ReferenceGolden reference = must(load_reference(name));
    const MicroGolden micro = must(load_micro(name));
    ASSERT_EQ(reference.ids, micro.ids);
    ASSERT_EQ(first_tied_row(reference), tie) << name;
    for (size_t t = 0; t < tie; ++t) {
      for (size_t i = 0; i < 512; ++i) {
        ASSERT_NEAR(reference.logits.row(t)[i], micro.logits.row(t)[i], 2e-4f) << name << t;
      }
    }
  }
}

// Every mistake must be visible in every row that is kept, or a test against it could not fail.
TEST(Golden, MistakesAreFarFromTheReference) {
  for (const char* name : {"interleaved-k2", "interleaved-k4", "interleaved-k8", "half-split-k2",
                           "half-split-k4", "half-split-k8", "shared-k4"}) {
    const ReferenceGolden golden = must(load_reference(name));
    ASSERT_EQ(golden.wrong.size(), std::string_view(name) == "shared-k4" ? 6u : 5u);
    for (const auto& [mistake, logits] : golden.wrong) {
      for (size_t r = 0; r < golden.wrong_rows.size(); ++r) {
        const auto right = golden.logits.row(size_t(golden.wrong_rows[r]));
        float worst = 0;
        for (size_t i = 0; i < right.size(); ++i) {
          worst = std::max(worst, std::fabs(right[i] - logits.row(r)[i]));
        }
        EXPECT_GT(worst, 0.1f) << name << " " << mistake << " row " << golden.wrong_rows[r];
      }
    }
  }
}

}  // namespace
}  // namespace topknot::test
