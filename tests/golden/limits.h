// How far the engine may be from a golden, and why. Nothing here was chosen to fit a result: a
// limit comes from the size of a rounding and the number of roundings, or from what the README of
// the goldens measured between other programs.
#pragma once

#include <cmath>
#include <cstdint>

namespace topknot::test {

// A state of the forward pass in fp32, relative to the largest element of its row. A value passes
// about 14 sums in a layer (norms, projections, scores, the sum over keys, experts), each of at
// most `terms` products. A sum of n rounded terms is off by about sqrt(n) * 2^-24 of its norm,
// independent errors add in quadrature, and the largest of the 10^4 to 10^5 elements compared lies
// within 4.5 standard deviations.
inline double float_state_error(int64_t layers, int64_t terms) {
  return 4.5 * std::sqrt(14.0 * static_cast<double>(layers * terms)) * 0x1p-24;
}

// --- random models (README: float32 against float64 2.5e-5 in a logit, 3.5e-5 in a score)
// ---------

// Two float32 programs that round in different places are each that far from float64, and the seeds
// leave a margin of 1.6e-4 at every choice: a score that keeps this limit cannot change one.
inline constexpr double kFloatScoreError = 2 * 3.5e-5;
inline constexpr double kFloatLogitError = 2 * 2.5e-5;
// Every mistake moves a logit of each row by 0.15 or more.
inline constexpr double kMistakeShows = 0.15 - kFloatLogitError;

// --- bf16 rows
// ------------------------------------------------------------------------------------

// Rows that are equal up to fp32 errors are equal after rounding to bf16 but for elements near the
// middle of two values. With errors of about 1e-6 and values 2^-8 apart these are p = 4e-4 of all,
// and each moves by a whole step where rounding moves every element by a step over sqrt(12):
// sqrt(12 p) = 7 % of the effect of rounding. Three standard deviations of that.
inline constexpr double kRoundingFlips = 3 * 0.07;

}  // namespace topknot::test
