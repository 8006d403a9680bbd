#include "ops/routing.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.h"

namespace topknot::ops {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

void score(Gating gating, std::span<float> logits) {
  if (gating == Gating::kSigmoid) {
    for (float& value : logits) value = 1.0f / (1.0f + std::exp(-value));
    return;
  }
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (float& value : logits) {
    value = std::exp(value - largest);
    sum += static_cast<double>(value);
  }
  for (float& value : logits) value = static_cast<float>(static_cast<double>(value) / sum);
}

constexpr float kTaken = std::numeric_limits<float>::quiet_NaN();

// Takes the largest value that is not yet taken, the lower index on ties, and marks it. At least
// one must be left; -inf can be taken. A score must not be NaN: that is the mark.
size_t take_best(std::span<float> values) {
  size_t at = 0;
  while (at < values.size() && std::isnan(values[at])) ++at;
  TOPKNOT_ASSERT(at < values.size());
  for (size_t i = at + 1; i < values.size(); ++i) {
    if (values[i] > values[at]) at = i;  // false for a taken one
  }
  values[at] = kTaken;
  return at;
}

// With a selection bias a group counts as the sum of its two best, without one as its best
// (DeepSeek-V3 and V2).
float group_score(std::span<const float> group, bool biased) {
  float first = kMinusInfinity;
  float second = kMinusInfinity;
  for (const float value : group) {
    if (value > first) {
      second = first;
      first = value;
    } else if (value > second) {
      second = value;
    }
  }
  const float score = biased && group.size() > 1 ? first + second : first;
  return std::isnan(score) ? kMinusInfinity : score;  // a bias of inf and one of -inf
}

// Experts outside the best groups are set to -inf (not 0: biased scores may be negative).
void mask_groups(const RouterSpec& spec, bool biased, std::span<float> selection,
                 std::span<float> group_scores) {
  const auto size = static_cast<size_t>(spec.experts / spec.groups);
  for (size_t g = 0; g < group_scores.size(); ++g) {
    group_scores[g] = group_score(selection.subspan(g * size, size), biased);
  }
  for (int64_t kept = 0; kept < spec.groups_used; ++kept) take_best(group_scores);
  for (size_t g = 0; g < group_scores.size(); ++g) {
    if (std::isnan(group_scores[g])) continue;
    const auto group = selection.subspan(g * size, size);
    std::fill(group.begin(), group.end(), kMinusInfinity);
  }
}

}  // namespace

void route_token(const RouterSpec& spec, std::span<float> logits, std::span<const float> bias,
                 std::span<float> scratch, int32_t* ids, float* weights) {
  const auto experts = static_cast<size_t>(spec.experts);
  TOPKNOT_ASSERT(logits.size() == experts && scratch.size() >= 2 * experts);
  TOPKNOT_ASSERT(spec.used <= spec.experts && spec.groups_used <= spec.groups);
  score(spec.gating, logits);
  const auto selection = scratch.first(experts);
  for (size_t e = 0; e < experts; ++e) {
    const float value = logits[e] + (bias.empty() ? 0.0f : bias[e]);
    selection[e] = std::isnan(value) ? kMinusInfinity : value;
  }
  if (spec.groups > 1) {
    mask_groups(spec, !bias.empty(), selection,
                scratch.subspan(experts, static_cast<size_t>(spec.groups)));
  }
  float sum = 0;
  for (int64_t k = 0; k < spec.used; ++k) {
    const size_t at = take_best(selection);
    ids[k] = static_cast<int32_t>(at);
    weights[k] = logits[at];
    sum += logits[at];
  }
  const float factor = spec.normalise ? spec.scale / (sum + 1e-20f) : spec.scale;
  for (int64_t k = 0; k < spec.used; ++k) weights[k] *= factor;
}

}  // namespace topknot::ops
