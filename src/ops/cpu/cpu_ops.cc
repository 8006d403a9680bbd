#include "ops/cpu/cpu_ops.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/assert.h"
#include "base/checked_math.h"
#include "ops/routing.h"

namespace topknot::ops {
namespace {

// Rows decoded at once: enough to fill the register tiles, few enough to stay in the first-level
// cache beside the activations (8 rows of 2,048 floats are 64 KiB).
constexpr int64_t kDecodeRows = 8;
// Rows of one piece of work: small, so that a slow thread delays little; a multiple of kDecodeRows.
constexpr int64_t kPieceRows = 32;
constexpr int64_t kPieceTokens = 8;  // of operations that go token by token

using Piece = std::pair<int64_t, int64_t>;  // expert, first row

// Elements of each buffer.
struct Sizes {
  explicit Sizes(const Ops::Limits& limits)
      : rows(limits.row_elements * kDecodeRows),
        scores(3 * limits.experts),
        assignments(limits.tokens * limits.experts_used),
        expert_x(limits.experts > 0 ? assignments * limits.row_elements : 0),
        expert_inner(assignments * limits.expert_width),
        pieces(limits.experts * (limits.row_elements / kPieceRows + 2)) {}

  int64_t rows, scores;  // for each thread
  int64_t assignments, expert_x, expert_inner, pieces;
};

class CpuOps final : public Ops {
 public:
  CpuOps(const Kernels& kernels, ThreadPool* pool) : kernels_(kernels), pool_(*pool) {}

  std::string_view name() const override { return kernels_.name; }

  void reserve(const Limits& limits) override {
    const Sizes sizes(limits);
    const auto threads = static_cast<size_t>(pool_.threads());
    rows_.assign(threads, std::vector<float>(static_cast<size_t>(sizes.rows)));
    scores_.assign(threads, std::vector<float>(static_cast<size_t>(sizes.scores)));
    expert_x_.resize(static_cast<size_t>(sizes.expert_x));
    expert_gate_.resize(static_cast<size_t>(sizes.expert_inner));
    expert_up_.resize(static_cast<size_t>(sizes.expert_inner));
    order_.resize(static_cast<size_t>(sizes.assignments));
    place_.resize(static_cast<size_t>(sizes.assignments));
    begin_.resize(static_cast<size_t>(limits.experts + 1));
    pieces_.reserve(static_cast<size_t>(sizes.pieces));
  }

  void embed(const Weight& table, std::span<const int32_t> ids, float* out) override {
    pool_.parallel_for(static_cast<int64_t>(ids.size()), [&](int64_t t, int) {
      kernels_.decode_row(table.type, table.row(0, ids[static_cast<size_t>(t)]), table.in,
                          out + t * table.in);
    });
  }

  void rms_norm(const float* x, int64_t x_stride, const float* weight, int64_t tokens,
                int64_t width, float eps, float* out) override {
    each_token(tokens, [&](int64_t t, int) {
      const float* in = x + t * x_stride;
      float square = 0;
      kernels_.dot_tile(in, width, 1, in, width, 1, width, &square, 1);
      const float scale = 1.0f / std::sqrt(square / static_cast<float>(width) + eps);
      for (int64_t i = 0; i < width; ++i) out[t * width + i] = weight[i] * (in[i] * scale);
    });
  }

  void layer_norm(const float* x, const float* weight, const float* bias, int64_t tokens,
                  int64_t width, float eps, float* out) override {
    each_token(tokens, [&](int64_t t, int) {
      const float* in = x + t * width;
      float* normed = out + t * width;
      double sum = 0;
      for (int64_t i = 0; i < width; ++i) sum += static_cast<double>(in[i]);
      const auto mean = static_cast<float>(sum / static_cast<double>(width));
      double square = 0;
      for (int64_t i = 0; i < width; ++i) {
        const double centred = static_cast<double>(in[i] - mean);
        square += centred * centred;
      }
      const auto scale = static_cast<float>(
          1.0 / std::sqrt(square / static_cast<double>(width) + static_cast<double>(eps)));
      for (int64_t i = 0; i < width; ++i) {
        normed[i] = (in[i] - mean) * scale * weight[i] + bias[i];
      }
    });
  }

  void rope(const RopeArgs& args) override {
    each_token(args.tokens, [&](int64_t t, int) {
      for (int64_t h = 0; h < args.heads; ++h) rotate(args, t, h);
    });
  }

  void linear(const Weight& w, const float* x, int64_t tokens, float* out) override {
    pool_.parallel_for(ceil_div(w.out, kPieceRows), [&](int64_t piece, int thread) {
      multiply({&w, 0, piece * kPieceRows}, x, w.in, tokens, out, w.out, thread);
    });
  }

  void linear_heads(const Weight& w, const HeadVectors& v, int64_t tokens) override {
    const int64_t pieces = ceil_div(w.out, kPieceRows);
    pool_.parallel_for(w.count * pieces, [&](int64_t item, int thread) {
      const int64_t h = item / pieces;
      multiply({&w, h, item % pieces * kPieceRows}, v.x + h * v.x_head, v.x_row, tokens,
               v.out + h * v.out_head, v.out_row, thread);
    });
  }

  void linear_heads_transposed(const Weight& w, const HeadVectors& v, int64_t tokens) override {
    pool_.parallel_for(w.count, [&](int64_t h, int thread) {
      float* out = v.out + h * v.out_head;
      for (int64_t t = 0; t < tokens; ++t) std::fill_n(out + t * v.out_row, w.in, 0.0f);
      for (int64_t d = 0; d < w.out; d += kDecodeRows) {
        const int64_t rows = std::min(kDecodeRows, w.out - d);
        const float* decoded = decode(w, h, d, rows, thread);
        kernels_.accumulate(v.x + h * v.x_head + d, v.x_row, tokens, decoded, w.in, rows, w.in, out,
                            v.out_row);
      }
    });
  }

  void silu_mul(float* gate, const float* up, int64_t n) override {
    constexpr int64_t kPiece = 16'384;
    pool_.parallel_for(ceil_div(n, kPiece), [&](int64_t piece, int) {
      const int64_t begin = piece * kPiece;
      kernels_.silu_mul(gate + begin, up + begin, std::min(kPiece, n - begin));
    });
  }

  void add(float* x, const float* y, int64_t n) override {
    for (int64_t i = 0; i < n; ++i) x[i] += y[i];
  }

  void route(const RouterSpec& spec, const float* logits, const float* bias, int64_t tokens,
             int32_t* ids, float* weights) override {
    const auto experts = static_cast<size_t>(spec.experts);
    each_token(tokens, [&](int64_t t, int thread) {
      const std::span<float> scratch(scores_[static_cast<size_t>(thread)]);
      std::copy_n(logits + t * spec.experts, experts, scratch.begin());
      route_token(spec, scratch.first(experts),
                  bias == nullptr ? std::span<const float>() : std::span(bias, experts),
                  scratch.subspan(experts), ids + t * spec.used, weights + t * spec.used);
    });
  }

  void experts(const ExpertWeights& w, const float* x, const int32_t* ids, const float* weights,
               int64_t used, int64_t tokens, float* out) override {
    group_by_expert(w.gate.count, ids, used * tokens);
    const int64_t width = w.gate.in;
    pool_.parallel_for(tokens * used, [&](int64_t i, int) {
      const int64_t token = order_[static_cast<size_t>(i)] / used;
      std::copy_n(x + token * width, width, expert_x_.data() + i * width);
    });
    list_pieces(w.gate.count, w.gate.out);
    const auto inner = w.gate.out;
    pool_.parallel_for(static_cast<int64_t>(pieces_.size()), [&](int64_t i, int thread) {
      const auto [expert, row] = pieces_[static_cast<size_t>(i)];
      const int64_t first = begin_[static_cast<size_t>(expert)];
      const int64_t count = begin_[static_cast<size_t>(expert) + 1] - first;
      const float* in = expert_x_.data() + first * width;
      float* gate = expert_gate_.data() + first * inner;
      float* up = expert_up_.data() + first * inner;
      multiply({&w.gate, expert, row}, in, width, count, gate, inner, thread);
      multiply({&w.up, expert, row}, in, width, count, up, inner, thread);
      const int64_t rows = std::min(kPieceRows, inner - row);
      for (int64_t t = 0; t < count; ++t) {
        kernels_.silu_mul(gate + t * inner + row, up + t * inner + row, rows);
      }
    });
    list_pieces(w.down.count, w.down.out);
    pool_.parallel_for(static_cast<int64_t>(pieces_.size()), [&](int64_t i, int thread) {
      const auto [expert, row] = pieces_[static_cast<size_t>(i)];
      const int64_t first = begin_[static_cast<size_t>(expert)];
      const int64_t count = begin_[static_cast<size_t>(expert) + 1] - first;
      multiply({&w.down, expert, row}, expert_gate_.data() + first * inner, inner, count,
               expert_x_.data() + first * width, width, thread);  // the gathered input is done with
    });
    combine(weights, used, tokens, width, out);
  }

 private:
  struct Rows {
    const Weight* w;
    int64_t matrix;
    int64_t first;
  };

  template <class Body>
  void each_token(int64_t tokens, Body&& body) {
    pool_.parallel_for(ceil_div(tokens, kPieceTokens), [&](int64_t piece, int thread) {
      const int64_t end = std::min(tokens, (piece + 1) * kPieceTokens);
      for (int64_t t = piece * kPieceTokens; t < end; ++t) body(t, thread);
    });
  }

  static void rotate(const RopeArgs& args, int64_t t, int64_t h) {
    const int64_t half = args.dim / 2;
    float* v = args.data + t * args.row_stride + h * args.head_stride;
    const bool interleaved = args.flavour == RopeFlavour::kInterleaved;
    for (int64_t i = 0; i < half; ++i) {
      float& first = v[interleaved ? 2 * i : i];
      float& second = v[interleaved ? 2 * i + 1 : i + half];
      const float c = args.cosines[t * half + i];
      const float s = args.sines[t * half + i];
      const float a = first;
      const float b = second;
      first = a * c - b * s;
      second = a * s + b * c;
    }
  }

  // fp32 rows [rows, in]; weights that are fp32 already are not copied.
  const float* decode(const Weight& w, int64_t matrix, int64_t row, int64_t rows, int thread) {
    float* out = rows_[static_cast<size_t>(thread)].data();
    for (int64_t r = 0; r < rows; ++r) {
      kernels_.decode_row(w.type, w.row(matrix, row + r), w.in, out + r * w.in);
    }
    return out;
  }

  // Up to kPieceRows output rows from `rows.first` on, for all tokens.
  void multiply(const Rows& rows, const float* x, int64_t x_row, int64_t tokens, float* out,
                int64_t out_row, int thread) {
    const Weight& w = *rows.w;
    const int64_t end = std::min(w.out, rows.first + kPieceRows);
    for (int64_t r = rows.first; r < end; r += kDecodeRows) {
      const int64_t count = std::min(kDecodeRows, end - r);
      const float* decoded = decode(w, rows.matrix, r, count, thread);
      kernels_.dot_tile(decoded, w.in, count, x, x_row, tokens, w.in, out + r, out_row);
    }
  }

  // order_: assignments (token * used + k) sorted by expert, stable; begin_: where each expert's
  // start.
  void group_by_expert(int64_t experts, const int32_t* ids, int64_t assignments) {
    std::fill(begin_.begin(), begin_.end(), 0);
    for (int64_t i = 0; i < assignments; ++i) ++begin_[static_cast<size_t>(ids[i]) + 1];
    for (int64_t e = 0; e < experts; ++e) {
      begin_[static_cast<size_t>(e) + 1] += begin_[static_cast<size_t>(e)];
    }
    // begin_[e] is used as a cursor, then moved back by one expert.
    for (int64_t i = 0; i < assignments; ++i) {
      const int64_t at = begin_[static_cast<size_t>(ids[i])]++;
      order_[static_cast<size_t>(at)] = i;
      place_[static_cast<size_t>(i)] = at;
    }
    for (int64_t e = experts; e > 0; --e) {
      begin_[static_cast<size_t>(e)] = begin_[static_cast<size_t>(e) - 1];
    }
    begin_[0] = 0;
  }

  // Row pieces of every expert that has tokens.
  void list_pieces(int64_t experts, int64_t rows) {
    pieces_.clear();
    for (int64_t e = 0; e < experts; ++e) {
      if (begin_[static_cast<size_t>(e)] == begin_[static_cast<size_t>(e) + 1]) continue;
      for (int64_t r = 0; r < rows; r += kPieceRows) pieces_.emplace_back(e, r);
    }
  }

  // Each token's experts in the order it chose them, so that grouping does not change a sum.
  void combine(const float* weights, int64_t used, int64_t tokens, int64_t width, float* out) {
    each_token(tokens, [&](int64_t t, int) {
      float* sum = out + t * width;
      std::fill_n(sum, width, 0.0f);
      for (int64_t k = 0; k < used; ++k) {
        const int64_t i = t * used + k;
        const float* y = expert_x_.data() + place_[static_cast<size_t>(i)] * width;
        for (int64_t c = 0; c < width; ++c) sum[c] += weights[i] * y[c];
      }
    });
  }

  const Kernels& kernels_;
  ThreadPool& pool_;
  std::vector<std::vector<float>> rows_;    // per thread: decoded rows
  std::vector<std::vector<float>> scores_;  // per thread: router scratch
  std::vector<float> expert_x_, expert_gate_, expert_up_;
  std::vector<int64_t> order_, place_, begin_;
  std::vector<Piece> pieces_;
};

}  // namespace

int64_t cpu_ops_workspace_bytes(const Ops::Limits& limits, int threads) {
  const Sizes sizes(limits);
  const auto bytes = [](int64_t count, size_t each) { return count * static_cast<int64_t>(each); };
  return bytes(threads * (sizes.rows + sizes.scores) + sizes.expert_x + 2 * sizes.expert_inner,
               sizeof(float)) +
         bytes(2 * sizes.assignments + limits.experts + 1, sizeof(int64_t)) +
         bytes(sizes.pieces, sizeof(Piece));
}

std::unique_ptr<Ops> make_cpu_ops(const Kernels& kernels, ThreadPool* pool) {
  return std::make_unique<CpuOps>(kernels, pool);
}

}  // namespace topknot::ops
