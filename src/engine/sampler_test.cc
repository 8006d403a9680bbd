#include "engine/sampler.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <map>

#include "engine/stop_filter.h"

namespace topknot::engine {
namespace {

SamplingOptions plain() {
  SamplingOptions o;
  o.temperature = 1;
  o.top_k = 0;
  o.top_p = 1;
  o.min_p = 0;
  o.seed = 7;
  return o;
}

std::map<int32_t, int> counts(const SamplingOptions& options, const std::vector<float>& logits,
                              int draws, std::vector<bool> allowed = {}) {
  if (allowed.empty()) allowed.assign(logits.size(), true);
  Sampler sampler(options, {}, allowed);
  std::map<int32_t, int> out;
  for (int i = 0; i < draws; ++i) ++out[*sampler.sample(logits)];
  return out;
}

TEST(Sampler, GreedyTakesTheLikeliestAndTheLowerIdOnATie) {
  SamplingOptions o = plain();
  o.temperature = 0;
  const std::vector<bool> allowed(4, true);
  Sampler sampler(o, {}, allowed);
  EXPECT_EQ(*sampler.sample(std::vector<float>{1, 3, 3, 2}), 1);
}

TEST(Sampler, DrawsFollowTheDistribution) {
  const auto seen = counts(plain(), {0, std::log(2.0f), std::log(5.0f)}, 8000);
  // Binomial: five standard deviations of 8000 draws are below 0.028.
  EXPECT_NEAR(seen.at(0) / 8000.0, 1.0 / 8, 0.028);
  EXPECT_NEAR(seen.at(1) / 8000.0, 2.0 / 8, 0.028);
  EXPECT_NEAR(seen.at(2) / 8000.0, 5.0 / 8, 0.028);
}

TEST(Sampler, FiltersKeepWhatTheySay) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.3f), std::log(0.15f),
                                     std::log(0.05f)};
  SamplingOptions o = plain();
  o.top_k = 2;
  EXPECT_EQ(counts(o, logits, 500).size(), 2u);
  o = plain();
  o.top_p = 0.75f;
  EXPECT_EQ(counts(o, logits, 500).size(), 2u);
  o.top_p = 0;
  EXPECT_EQ(counts(o, logits, 50).size(), 1u) << "the best always stays";
  o = plain();
  o.min_p = 0.25f;
  EXPECT_EQ(counts(o, logits, 500).size(), 3u);
}

TEST(Sampler, ATinyTemperatureIsNearlyGreedy) {
  SamplingOptions o = plain();
  o.temperature = 1e-38f;
  EXPECT_EQ(counts(o, {-3, 5, 4.9f, 20, 19.5f}, 200), (std::map<int32_t, int>{{3, 200}}));
}

TEST(Sampler, PenaltiesLowerWhatWasSaid) {
  SamplingOptions o = plain();
  o.temperature = 0;
  o.presence_penalty = 2;
  const std::vector<bool> allowed(3, true);
  Sampler presence(o, {}, allowed);
  const std::vector<float> logits = {1.5f, 1, 0};
  EXPECT_EQ(*presence.sample(logits), 0);
  EXPECT_EQ(*presence.sample(logits), 1);
  o.presence_penalty = 0;
  o.repeat_penalty = 2;
  const std::vector<int32_t> prompt = {0};
  Sampler repeat(o, prompt, allowed);
  EXPECT_EQ(*repeat.sample(logits), 1) << "the prompt counts";
}

TEST(Sampler, MaskedPaddingAndNonFiniteLogitsAreNeverChosen) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const auto seen = counts(plain(), {9, nan, inf, 0, 50}, 200, {false, true, true, true});
  EXPECT_EQ(seen.size(), 1u);
  EXPECT_TRUE(seen.contains(3));
  const std::vector<bool> allowed(2, true);
  Sampler sampler(plain(), {}, allowed);
  const auto none = sampler.sample(std::vector<float>{nan, -inf});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, Code::kCorrupt);
}

TEST(Sampler, ASeedGivesTheSameTokens) {
  const std::vector<float> logits(50, 0.0f);
  EXPECT_EQ(counts(plain(), logits, 100), counts(plain(), logits, 100));
}

TEST(Sampler, OptionsOutOfRangeAreNamed) {
  SamplingOptions o;
  o.top_p = 1.5f;
  EXPECT_THAT(check_sampling(o).error().what, testing::HasSubstr("--top-p"));
  o = {};
  o.temperature = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(check_sampling(o));
}

TEST(Sampler, LogprobsAreNormalised) {
  const auto top = likeliest(std::vector<float>{0, std::log(3.0f), 0}, 2);
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0].token, 1);
  EXPECT_NEAR(top[0].logprob, std::log(0.6f), 1e-6f);
  EXPECT_EQ(top[1].token, 0);
}

TEST(StopFilter, AnyChunkingGivesTheSameText) {
  const std::string text = "one two END three";
  const std::vector<std::string> stops = {"END", "two ENX", ""};
  for (size_t chunk = 1; chunk <= text.size(); ++chunk) {
    StopFilter filter(stops);
    std::string out;
    for (size_t i = 0; i < text.size(); i += chunk) out += filter.push(text.substr(i, chunk));
    EXPECT_TRUE(filter.stopped());
    EXPECT_EQ(out + filter.finish(), "one two ");
  }
}

TEST(StopFilter, WhatOnlyLookedLikeAStopComesOut) {
  StopFilter filter({"</stop>"});
  EXPECT_EQ(filter.push("a</st"), "a");
  EXPECT_EQ(filter.push("op"), "");
  EXPECT_EQ(filter.push("!"), "</stop!");
  EXPECT_EQ(filter.push("<"), "");
  EXPECT_EQ(filter.finish(), "<");
  EXPECT_FALSE(filter.stopped());
}

}  // namespace
}  // namespace topknot::engine
