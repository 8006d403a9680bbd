// Random and hostile MLA problems with a reference in double precision, for GPU kernels.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "attention/backends/portable/mla_kernels.h"

namespace topknot::bench {

using attention::portable::RowFormat;

struct ProblemShape {
  RowFormat format = RowFormat::kBf16;
  int heads = 8, rank = 512, rope = 64;
  int topk = 256;  // sparse: entries of a list; dense: rows of the longest context
  int tokens = 4;
  bool dense = false;
  int width() const { return rank + rope; }
};

// Everything on the host. Rows that no token selects are NaN in their own format. Token 0 selects
// nothing, token 1 has no holes, the others have holes anywhere.
struct Problem {
  ProblemShape shape;
  int64_t row_bytes = 0;
  std::vector<uint8_t> rows;     // [slots, row_bytes]
  std::vector<double> values;    // [slots, width]: what the bytes mean
  std::vector<uint16_t> q;       // bf16 [tokens, heads, width]
  std::vector<int32_t> pages;    // slots [tokens, topk], or the block tables [requests, max_pages]
  std::vector<int32_t> list_of;  // dense: request of a token
  std::vector<int32_t> counts;   // dense: visible rows of a token
  int64_t stride = 0;
  float sm_scale = 0;
  std::vector<double> out, lse;  // the reference
};

Problem make_problem(const ProblemShape& shape, uint32_t seed);
void solve(Problem* problem);  // fills out and lse, with all host threads

int64_t row_bytes(RowFormat format, int rank, int rope);
double bf16_value(uint16_t bits);
uint16_t bf16_bits(double value);

struct Error {
  double out = 0;  // |out - reference| / |reference|, Euclidean; infinite when a number is NaN
  double lse = 0;  // largest absolute difference; infinite when -inf does not match
};
Error error_of(const Problem& problem, const std::vector<uint16_t>& out,
               const std::vector<float>& lse);

}  // namespace topknot::bench
