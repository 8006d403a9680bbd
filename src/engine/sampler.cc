#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/strings.h"

namespace topknot::engine {
namespace {

Error out_of_range(std::string_view option, double value, std::string_view range) {
  return Error{.code = Code::kInvalidArgument,
               .what = cat(option, " ", value, " is out of range"),
               .where = std::string(option),
               .why = cat("needed: ", range),
               .fix = cat("give ", option, " a value in that range, or leave it out")};
}

bool likelier(float a, int32_t a_token, float b, int32_t b_token) {
  return a > b || (a == b && a_token < b_token);
}

}  // namespace

Status check_sampling(const SamplingOptions& o) {
  const auto within = [](float value, float low, float high) {
    return value >= low && value <= high;
  };
  if (!within(o.temperature, 0, 100))
    return out_of_range("--temp", o.temperature, "0 to 100; 0 is greedy");
  if (o.top_k < 0) return out_of_range("--top-k", o.top_k, "0 or more; 0 keeps all");
  if (!within(o.top_p, 0, 1)) return out_of_range("--top-p", o.top_p, "0 to 1; 1 keeps all");
  if (!within(o.min_p, 0, 1)) return out_of_range("--min-p", o.min_p, "0 to 1; 0 keeps all");
  if (!within(o.repeat_penalty, 0.01f, 100)) {
    return out_of_range("--repeat-penalty", o.repeat_penalty, "0.01 to 100; 1 is none");
  }
  if (!within(o.presence_penalty, -100, 100)) {
    return out_of_range("--presence-penalty", o.presence_penalty, "-100 to 100; 0 is none");
  }
  if (!within(o.frequency_penalty, -100, 100)) {
    return out_of_range("--frequency-penalty", o.frequency_penalty, "-100 to 100; 0 is none");
  }
  if (o.repeat_last_n < -1)
    return out_of_range("--repeat-last-n", o.repeat_last_n, "-1 (all) or more");
  return {};
}

Sampler::Sampler(const SamplingOptions& options, std::span<const int32_t> prompt,
                 const std::vector<bool>& allowed)
    : options_(options),
      seed_(options.seed ? *options.seed : std::random_device{}()),
      random_(seed_),
      history_(prompt.begin(), prompt.end()),
      allowed_(allowed) {}

Result<int32_t> Sampler::sample(std::span<const float> logits) {
  entries_.clear();
  const size_t count = std::min(logits.size(), allowed_.size());
  for (size_t i = 0; i < count; ++i) {
    if (allowed_[i] && std::isfinite(logits[i])) {
      entries_.push_back({static_cast<int32_t>(i), logits[i]});
    }
  }
  if (entries_.empty()) {
    return Error{
        .code = Code::kCorrupt,
        .what = "the model gave no usable prediction",
        .why = cat("needed: a finite logit; found: none among ", count, " tokens"),
        .fix = "verify the file; try --dtype f32 and --kernels reference to rule out a kernel"};
  }
  apply_penalties();
  int32_t token = 0;
  if (options_.temperature == 0) {
    token = std::max_element(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
              return likelier(b.logit, b.token, a.logit, a.token);
            })->token;
  } else {
    // Differences to the largest first: a tiny temperature must not make infinities of all of them.
    float largest = entries_.front().logit;
    for (const Entry& entry : entries_) largest = std::max(largest, entry.logit);
    for (Entry& entry : entries_) entry.logit = (entry.logit - largest) / options_.temperature;
    keep_top_k();
    keep_likely();
    token = draw();
  }
  history_.push_back(token);
  ++generated_[token];
  return token;
}

void Sampler::apply_penalties() {
  const float repeat = options_.repeat_penalty;
  const bool counts = options_.presence_penalty != 0 || options_.frequency_penalty != 0;
  if (repeat == 1 && !counts) return;
  const size_t window =
      options_.repeat_last_n < 0
          ? history_.size()
          : std::min(history_.size(), static_cast<size_t>(options_.repeat_last_n));
  const std::span<const int32_t> recent = std::span(history_).last(window);
  std::unordered_map<int32_t, bool> repeated;
  for (const int32_t token : recent) repeated[token] = true;
  for (Entry& entry : entries_) {
    if (repeated.contains(entry.token)) {
      entry.logit = entry.logit > 0 ? entry.logit / repeat : entry.logit * repeat;
    }
    const auto seen = generated_.find(entry.token);
    if (seen == generated_.end()) continue;
    entry.logit -=
        options_.presence_penalty + options_.frequency_penalty * static_cast<float>(seen->second);
  }
}

// Leaves the entries sorted, likeliest first.
void Sampler::keep_top_k() {
  const auto order = [](const Entry& a, const Entry& b) {
    return likelier(a.logit, a.token, b.logit, b.token);
  };
  const auto k = static_cast<size_t>(options_.top_k);
  if (k > 0 && k < entries_.size()) {
    std::partial_sort(entries_.begin(), entries_.begin() + options_.top_k, entries_.end(), order);
    entries_.resize(k);
  } else {
    std::sort(entries_.begin(), entries_.end(), order);
  }
}

// top-p: the fewest entries whose probabilities reach p. min-p: those at least min_p times the
// best.
void Sampler::keep_likely() {
  probabilities_.clear();
  double sum = 0;
  for (const Entry& entry : entries_) {
    const double p =
        std::exp(static_cast<double>(entry.logit) - static_cast<double>(entries_[0].logit));
    probabilities_.push_back(p);
    sum += p;
  }
  size_t keep = 0;
  double reached = 0;
  while (keep < entries_.size()) {
    const double p = probabilities_[keep];  // the best has 1
    if (keep > 0 && (reached >= static_cast<double>(options_.top_p) * sum ||
                     p < static_cast<double>(options_.min_p))) {
      break;
    }
    reached += p;
    ++keep;
  }
  entries_.resize(keep);
  probabilities_.resize(keep);
}

int32_t Sampler::draw() {
  double sum = 0;
  for (const double p : probabilities_) sum += p;
  // 53 random bits: the same on every standard library.
  const double at = static_cast<double>(random_() >> 11) * 0x1p-53 * sum;
  double reached = 0;
  for (size_t i = 0; i < entries_.size(); ++i) {
    reached += probabilities_[i];
    if (at < reached) return entries_[i].token;
  }
  return entries_.back().token;  // rounding of the sum
}

double log_sum_exp(std::span<const float> logits) {
  float largest = -std::numeric_limits<float>::infinity();
  for (const float value : logits) largest = std::max(largest, value);
  double sum = 0;
  for (const float value : logits) {
    sum += std::exp(static_cast<double>(value) - static_cast<double>(largest));
  }
  return static_cast<double>(largest) + std::log(sum);
}

std::vector<Likely> likeliest(std::span<const float> logits, size_t count) {
  const double total = log_sum_exp(logits);
  std::vector<Likely> all(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) all[i] = {static_cast<int32_t>(i), logits[i]};
  count = std::min(count, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<int64_t>(count), all.end(),
                    [](const Likely& a, const Likely& b) {
                      return likelier(a.logprob, a.token, b.logprob, b.token);
                    });
  all.resize(count);
  for (Likely& each : all) {
    each.logprob = static_cast<float>(static_cast<double>(each.logprob) - total);
  }
  return all;
}

}  // namespace topknot::engine
