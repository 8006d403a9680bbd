#include "ops/routing.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace topknot::ops {
namespace {

struct Routed {
  std::vector<int32_t> ids;
  std::vector<float> weights;
};

Routed route(const RouterSpec& spec, std::vector<float> logits, const std::vector<float>& bias) {
  Routed out{std::vector<int32_t>(static_cast<size_t>(spec.used)),
             std::vector<float>(static_cast<size_t>(spec.used))};
  std::vector<float> scratch(2 * logits.size());
  route_token(spec, logits, bias, scratch, out.ids.data(), out.weights.data());
  return out;
}

float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

TEST(Routing, TheBiasSelectsAndDoesNotWeigh) {
  const RouterSpec spec{.experts = 4, .used = 2, .normalise = true, .scale = 2.5f};
  const auto out = route(spec, {3, 2, 1, 0}, {0, 0, 0, 10});
  EXPECT_EQ(out.ids, (std::vector<int32_t>{3, 0}));
  const float sum = sigmoid(0) + sigmoid(3);
  EXPECT_NEAR(out.weights[0], 2.5f * sigmoid(0) / sum, 1e-6f);
  EXPECT_NEAR(out.weights[1], 2.5f * sigmoid(3) / sum, 1e-6f);
}

TEST(Routing, SoftmaxWithoutNormalisation) {
  const RouterSpec spec{
      .gating = Gating::kSoftmax, .experts = 3, .used = 1, .normalise = false, .scale = 16};
  const auto out = route(spec, {0, std::log(2.0f), 0}, {});
  EXPECT_EQ(out.ids[0], 1);
  EXPECT_NEAR(out.weights[0], 16 * 0.5f, 1e-5f);
}

TEST(Routing, TheLowerExpertWinsATie) {
  const RouterSpec spec{.experts = 6, .used = 3};
  EXPECT_EQ(route(spec, std::vector<float>(6, 0.5f), {}).ids, (std::vector<int32_t>{0, 1, 2}));
}

TEST(Routing, GroupsAreChosenByTheirTwoBestAndOthersAreOutEvenWhenScoresAreNegative) {
  const RouterSpec spec{.experts = 6, .used = 2, .groups = 3, .groups_used = 1};
  // Biased scores are all negative: masking with 0 would pick from a masked group.
  const std::vector<float> bias = {-9, -3, -4, -4, -8, -8};
  EXPECT_EQ(route(spec, std::vector<float>(6, 0.0f), bias).ids, (std::vector<int32_t>{2, 3}));
}

TEST(Routing, WithoutABiasTheBestOfAGroupCounts) {
  const RouterSpec spec{
      .gating = Gating::kSoftmax, .experts = 4, .used = 1, .groups = 2, .groups_used = 1};
  EXPECT_EQ(route(spec, {2, -9, 1.5f, 1.5f}, {}).ids[0], 0);
}

TEST(Routing, UnderflowAndNanStillGiveAChoiceAndFiniteWeights) {
  const RouterSpec spec{.experts = 4, .used = 4};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  auto out = route(spec, {-inf, -inf, -inf, -inf}, {});
  for (const float weight : out.weights) EXPECT_EQ(weight, 0.0f) << "0/0 must not become NaN";
  out = route(spec, {nan, 1, nan, 2}, {});
  EXPECT_EQ(out.ids, (std::vector<int32_t>{3, 1, 0, 2}));
}

TEST(Routing, InfiniteBiasesOfBothSignsInAGroupStillGiveAChoice) {
  const float inf = std::numeric_limits<float>::infinity();
  const RouterSpec spec{.experts = 8, .used = 2, .groups = 4, .groups_used = 2};
  const auto out =
      route(spec, std::vector<float>(8, 0.5f), {inf, -inf, inf, -inf, inf, -inf, inf, -inf});
  EXPECT_EQ(out.ids, (std::vector<int32_t>{0, 2})) << "inf - inf must not count as taken";
}

}  // namespace
}  // namespace topknot::ops
