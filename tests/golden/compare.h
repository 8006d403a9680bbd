// Arrays against goldens: where they differ most, and by how much.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "support/golden.h"
#include "support/model_runner.h"

namespace topknot::test {

template <class T>
T must(Result<T> result) {
  EXPECT_TRUE(result) << result.error().to_string();
  if (!result) std::abort();  // nothing after it can be tested
  return std::move(result).value();
}

inline std::unique_ptr<ModelRunner> open_model(const std::string& path, RunnerOptions options,
                                               std::vector<std::string> overrides = {}) {
  options.overrides = std::move(overrides);
  return must(ModelRunner::open(path, options));
}

struct Difference {
  double largest = 0;  // NaN differs by infinity
  size_t row = 0, column = 0;
  float got = 0, want = 0;

  bool operator<(const Difference& other) const { return largest < other.largest; }
  void take(size_t r, size_t c, float g, float w) {
    if (g == w) return;  // also two infinities
    double d = std::fabs(static_cast<double>(g) - static_cast<double>(w));
    if (std::isnan(d)) d = HUGE_VAL;
    if (d > largest) *this = {d, r, c, g, w};
  }
};

// Over rows [begin, end) of two matrices of one shape; `counts(row)` leaves rows out.
inline Difference difference(const Matrix& got, const Matrix& want, size_t begin = 0,
                             size_t end = SIZE_MAX,
                             const std::function<bool(size_t)>& counts = nullptr) {
  EXPECT_EQ(got.rows, want.rows);
  EXPECT_EQ(got.columns, want.columns);
  Difference out;
  for (size_t r = begin; r < std::min(end, want.rows); ++r) {
    if (counts && !counts(r)) continue;
    for (size_t c = 0; c < want.columns; ++c) out.take(r, c, got.row(r)[c], want.row(r)[c]);
  }
  return out;
}

// The same, each element relative to the largest of its row in `want`.
inline Difference relative_difference(const Matrix& got, const Matrix& want,
                                      size_t end = SIZE_MAX) {
  EXPECT_EQ(got.values.size(), want.values.size());
  Difference out;
  for (size_t r = 0; r < std::min(end, want.rows); ++r) {
    Difference row;
    float largest = 0;
    for (size_t c = 0; c < want.columns; ++c) {
      row.take(r, c, got.row(r)[c], want.row(r)[c]);
      largest = std::max(largest, std::fabs(want.row(r)[c]));
    }
    row.largest /= static_cast<double>(largest);
    out = std::max(out, row);
  }
  return out;
}

inline Difference difference(std::span<const float> got, std::span<const float> want) {
  EXPECT_EQ(got.size(), want.size());
  Difference out;
  for (size_t c = 0; c < want.size(); ++c) out.take(0, c, got[c], want[c]);
  return out;
}

// Fails above the limit with the worst element; prints what was measured, for docs and reviews.
inline void expect_within(const Difference& d, double limit, const std::string& what) {
  std::printf("[ measured ] %-58s %.3g of %.3g\n", what.c_str(), d.largest, limit);
  EXPECT_LE(d.largest, limit) << what << ": row " << d.row << ", column " << d.column << ": got "
                              << d.got << ", golden " << d.want;
}

// The same for a plain number that may not exceed a limit.
inline void expect_at_most(double value, double limit, const std::string& what) {
  std::printf("[ measured ] %-58s %.4g of %.4g\n", what.c_str(), value, limit);
  EXPECT_LE(value, limit) << what;
}

// Bit for bit.
inline void expect_same_bits(const Matrix& got, const Matrix& want, const std::string& what) {
  ASSERT_EQ(got.values.size(), want.values.size());
  for (size_t i = 0; i < want.values.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(got.values[i]), std::bit_cast<uint32_t>(want.values[i]))
        << what << ": row " << i / want.columns << ", column " << i % want.columns << ": "
        << got.values[i] << " and " << want.values[i];
  }
}

}  // namespace topknot::test
