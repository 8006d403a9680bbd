#include "attention_problem.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <thread>

namespace topknot::bench {
namespace {

constexpr int kPage = 64;
constexpr int kRequests = 2;

float half_value(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  const float sign = bits & 0x8000 ? -1.0f : 1.0f;
  if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -24);
  return sign * std::ldexp(static_cast<float>(1024 + mantissa), exponent - 25);
}

uint16_t half_bits(float value) {  // of a positive normal number, rounded to nearest
  int exponent = 0;
  const float fraction = std::frexp(value, &exponent);                           // [0.5, 1)
  const int mantissa = static_cast<int>(std::lround(std::ldexp(fraction, 11)));  // [1024, 2048]
  return static_cast<uint16_t>(((exponent + 14) << 10) + (mantissa - 1024));
}

double e4m3_value(uint8_t bits) {
  const int exponent = (bits >> 3) & 15, mantissa = bits & 7;
  const double sign = bits & 0x80 ? -1 : 1;
  if ((bits & 0x7f) == 0x7f) return NAN;
  if (exponent == 0) return sign * std::ldexp(mantissa, -9);
  return sign * std::ldexp(8 + mantissa, exponent - 10);
}

uint8_t e4m3_bits(double value) {  // the nearest of 127 magnitudes, which grow with their bits
  static const std::vector<double> kMagnitudes = [] {
    std::vector<double> all;
    for (int i = 0; i < 127; ++i) all.push_back(e4m3_value(static_cast<uint8_t>(i)));
    return all;
  }();
  const double magnitude = std::min(std::abs(value), kMagnitudes.back());
  auto at = std::lower_bound(kMagnitudes.begin(), kMagnitudes.end(), magnitude);
  if (at != kMagnitudes.begin() && magnitude - at[-1] < *at - magnitude) --at;
  return static_cast<uint8_t>((at - kMagnitudes.begin()) | (value < 0 ? 0x80 : 0));
}

void write_fp8_ds(const ProblemShape& shape, const double* in, uint8_t* row, double* values) {
  const int groups = (shape.rank + 127) / 128;
  for (int g = 0; g < groups; ++g) {
    double largest = 1e-6;
    const int end = std::min(shape.rank, (g + 1) * 128);
    for (int c = g * 128; c < end; ++c) largest = std::max(largest, std::abs(in[c]));
    const float scale = static_cast<float>(largest / 448);
    std::memcpy(row + shape.rank + 4 * g, &scale, 4);
    for (int c = g * 128; c < end; ++c) {
      row[c] = e4m3_bits(in[c] / static_cast<double>(scale));
      values[c] = e4m3_value(row[c]) * static_cast<double>(scale);
    }
  }
  for (int c = 0; c < shape.rope; ++c) {
    const uint16_t bits = bf16_bits(in[shape.rank + c]);
    std::memcpy(row + shape.rank + 4 * groups + 2 * c, &bits, 2);
    values[shape.rank + c] = bf16_value(bits);
  }
}

void write_q8_0(const ProblemShape& shape, const double* in, uint8_t* row, double* values) {
  for (int b = 0; b * 32 < shape.width(); ++b) {
    const int end = std::min(shape.width(), (b + 1) * 32);
    double largest = 1e-3;
    for (int c = b * 32; c < end; ++c) largest = std::max(largest, std::abs(in[c]));
    const uint16_t scale = half_bits(static_cast<float>(largest / 127));
    std::memcpy(row + 34 * b, &scale, 2);
    for (int c = b * 32; c < end; ++c) {
      const auto s = static_cast<double>(half_value(scale));
      const auto quant = static_cast<int8_t>(std::clamp(std::lround(in[c] / s), -127l, 127l));
      row[34 * b + 2 + c % 32] = static_cast<uint8_t>(quant);
      values[c] = quant * s;
    }
  }
}

void write_row(const ProblemShape& shape, const double* in, uint8_t* row, double* values) {
  switch (shape.format) {
    case RowFormat::kBf16:
      for (int c = 0; c < shape.width(); ++c) {
        const uint16_t bits = bf16_bits(in[c]);
        std::memcpy(row + 2 * c, &bits, 2);
        values[c] = bf16_value(bits);
      }
      return;
    case RowFormat::kFp8Ds: return write_fp8_ds(shape, in, row, values);
    case RowFormat::kQ8_0: return write_q8_0(shape, in, row, values);
  }
}

int64_t slot_of(const Problem& p, int token, int i) {
  if (!p.shape.dense) return p.pages[static_cast<size_t>(token * p.stride + i)];
  const int32_t page =
      p.pages[static_cast<size_t>(p.list_of[static_cast<size_t>(token)] * p.stride + i / kPage)];
  return static_cast<int64_t>(page) * kPage + i % kPage;
}

int count_of(const Problem& p, int token) {
  return p.shape.dense ? p.counts[static_cast<size_t>(token)] : p.shape.topk;
}

void solve_head(Problem* p, int token, int head) {
  const ProblemShape& shape = p->shape;
  const int width = shape.width();
  const size_t item = static_cast<size_t>(token) * shape.heads + head;
  const uint16_t* bits = p->q.data() + item * width;
  std::vector<double> q(static_cast<size_t>(width)), weights;
  std::vector<const double*> selected;
  for (int c = 0; c < width; ++c) q[static_cast<size_t>(c)] = bf16_value(bits[c]);
  double largest = -INFINITY;
  for (int i = 0; i < count_of(*p, token); ++i) {
    const int64_t slot = slot_of(*p, token, i);
    if (slot < 0) continue;
    const double* row = p->values.data() + slot * width;
    double score = 0;
    for (int c = 0; c < width; ++c) score += q[static_cast<size_t>(c)] * row[c];
    selected.push_back(row);
    weights.push_back(score * static_cast<double>(p->sm_scale));
    largest = std::max(largest, weights.back());
  }
  double total = 0;
  double* out = p->out.data() + item * shape.rank;
  for (size_t i = 0; i < selected.size(); ++i) {
    const double w = std::exp(weights[i] - largest);
    total += w;
    for (int c = 0; c < shape.rank; ++c) out[c] += w * selected[i][c];
  }
  if (total > 0) {
    for (int c = 0; c < shape.rank; ++c) out[c] /= total;
  }
  p->lse[item] = total > 0 ? largest + std::log(total) : -INFINITY;
}

}  // namespace

double bf16_value(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &wide, 4);
  return static_cast<double>(value);
}

uint16_t bf16_bits(double value) {
  const auto narrow = static_cast<float>(value);
  uint32_t bits = 0;
  std::memcpy(&bits, &narrow, 4);
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

int64_t row_bytes(RowFormat format, int rank, int rope) {
  switch (format) {
    case RowFormat::kBf16: return 2 * (rank + rope);
    case RowFormat::kFp8Ds: return rank + 4 * ((rank + 127) / 128) + 2 * rope;
    case RowFormat::kQ8_0: return (rank + rope + 31) / 32 * 34;
  }
  return 0;
}

Problem make_problem(const ProblemShape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Problem p;
  p.shape = shape;
  p.sm_scale = 1.0f / 16;
  p.row_bytes = row_bytes(shape.format, shape.rank, shape.rope);
  const int context_pages = (shape.topk + kPage - 1) / kPage + 1;
  const int pages = kRequests * context_pages + 3;
  const int64_t slots = static_cast<int64_t>(pages) * kPage;
  const int width = shape.width();
  p.rows.assign(static_cast<size_t>(slots * p.row_bytes), 0xff);  // NaN in every format
  p.values.assign(static_cast<size_t>(slots * width), NAN);
  p.out.assign(static_cast<size_t>(shape.tokens) * shape.heads * shape.rank, 0);
  p.lse.assign(static_cast<size_t>(shape.tokens) * shape.heads, 0);
  for (int64_t i = 0; i < static_cast<int64_t>(shape.tokens) * shape.heads * width; ++i) {
    p.q.push_back(bf16_bits(normal(random)));
  }
  std::vector<int32_t> order(static_cast<size_t>(pages));
  for (int i = 0; i < pages; ++i) order[static_cast<size_t>(i)] = i;
  std::shuffle(order.begin(), order.end(), random);
  std::vector<bool> used(static_cast<size_t>(slots), false);
  if (shape.dense) {
    p.stride = context_pages;
    p.pages.assign(order.begin(), order.begin() + kRequests * context_pages);
    for (int t = 0; t < shape.tokens; ++t) {
      p.list_of.push_back(t % kRequests);
      p.counts.push_back(t == 0   ? 0
                         : t == 1 ? shape.topk
                                  : static_cast<int32_t>(random() % (shape.topk + 1)));
    }
  } else {
    p.stride = shape.topk;
    std::vector<int32_t> all(static_cast<size_t>(slots));
    for (int64_t i = 0; i < slots; ++i) all[static_cast<size_t>(i)] = static_cast<int32_t>(i);
    for (int t = 0; t < shape.tokens; ++t) {
      std::shuffle(all.begin(), all.end(), random);
      for (int k = 0; k < shape.topk; ++k) {
        const bool hole = t == 0 || (t > 1 && random() % 4 == 0);
        p.pages.push_back(hole ? -1 : all[static_cast<size_t>(k)]);
      }
    }
  }
  for (int t = 0; t < shape.tokens; ++t) {
    for (int i = 0; i < count_of(p, t); ++i) {
      if (const int64_t slot = slot_of(p, t, i); slot >= 0) used[static_cast<size_t>(slot)] = true;
    }
  }
  std::vector<double> row(static_cast<size_t>(width));
  for (int64_t slot = 0; slot < slots; ++slot) {
    if (!used[static_cast<size_t>(slot)]) continue;
    for (double& value : row) value = normal(random);
    write_row(shape, row.data(), p.rows.data() + slot * p.row_bytes,
              p.values.data() + slot * width);
  }
  return p;
}

void solve(Problem* problem) {
  const int items = problem->shape.tokens * problem->shape.heads;
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> pool;
  for (int t = 0; t < threads; ++t) {
    pool.emplace_back([=] {
      for (int i = t; i < items; i += threads) {
        solve_head(problem, i / problem->shape.heads, i % problem->shape.heads);
      }
    });
  }
  for (std::thread& thread : pool) thread.join();
}

Error error_of(const Problem& p, const std::vector<uint16_t>& out, const std::vector<float>& lse) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  Error error;
  double difference = 0, norm = 0;
  for (size_t i = 0; i < p.out.size(); ++i) {
    const double got = bf16_value(out[i]);
    // Where nothing was selected the answer is exactly zero, whatever the norm of the others.
    const bool empty = std::isinf(p.lse[i / static_cast<size_t>(p.shape.rank)]);
    if (std::isnan(got) || (empty && got != 0)) return {kInfinite, kInfinite};
    difference += (got - p.out[i]) * (got - p.out[i]);
    norm += p.out[i] * p.out[i];
  }
  error.out = norm > 0 ? std::sqrt(difference / norm) : difference;
  for (size_t i = 0; i < p.lse.size(); ++i) {
    const auto got = static_cast<double>(lse[i]);
    if (std::isinf(p.lse[i]) || std::isnan(got)) {
      if (got != p.lse[i]) error.lse = kInfinite;
      continue;
    }
    error.lse = std::max(error.lse, std::abs(got - p.lse[i]));
  }
  return error;
}

}  // namespace topknot::bench
