// T-3.2: selection ends and is exact on adversarial rows.
#include "attention/indexer/top_k.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace topknot::attention {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<int32_t> by_sorting(const std::vector<float>& scores, int64_t k) {
  std::vector<int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const float x = scores[static_cast<size_t>(a)];
    const float y = scores[static_cast<size_t>(b)];
    if (std::isnan(x)) return false;
    return std::isnan(y) || x > y;
  });
  order.resize(std::min(order.size(), static_cast<size_t>(std::max<int64_t>(k, 0))));
  std::sort(order.begin(), order.end());
  return order;
}

void expect_exact(const std::vector<float>& scores, int64_t k) {
  std::vector<int32_t> got(static_cast<size_t>(std::max<int64_t>(k, 1)), -7);
  const int64_t count = select_top_k(scores, k, got.data());
  got.resize(static_cast<size_t>(count));
  EXPECT_EQ(got, by_sorting(scores, k)) << "k " << k << " of " << scores.size();
}

TEST(TopK, AdversarialRows) {
  for (const size_t n : {0u, 1u, 2u, 7u, 64u, 1000u}) {
    for (const int64_t k : {0, 1, 2, 63, 64, 999, 1000, 2048}) {
      expect_exact(std::vector<float>(n, 0.0f), k);   // all equal: the lower index
      expect_exact(std::vector<float>(n, -kInf), k);  // all masked
      expect_exact(std::vector<float>(n, kNan), k);
      std::vector<float> one(n, -1.0f);
      if (n > 0) one[n / 2] = 5.0f;
      expect_exact(one, k);
      std::vector<float> mixed(n);
      for (size_t i = 0; i < n; ++i) {
        mixed[i] = std::array<float, 7>{kNan, kInf, -kInf, 0.0f, -0.0f, 1e-42f, -1e-42f}[i * 5 % 7];
      }
      expect_exact(mixed, k);
    }
  }
}

TEST(TopK, RandomRowsWithManyTies) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<float> scores(random() % 5000);
    const bool coarse = round % 2 == 0;
    for (float& s : scores) {
      s = coarse ? static_cast<float>(random() % 9) - 4
                 : std::ldexp(static_cast<float>(random()) - 2e9f, -20);
    }
    expect_exact(scores, static_cast<int64_t>(random() % 2100));
  }
}

TEST(TopK, NegativeZeroEqualsZero) {
  const std::vector<float> scores = {-0.0f, 0.0f, -0.0f, 0.0f};
  std::vector<int32_t> got(2);
  EXPECT_EQ(select_top_k(scores, 2, got.data()), 2);
  EXPECT_EQ(got, (std::vector<int32_t>{0, 1}));
}

}  // namespace
}  // namespace topknot::attention
