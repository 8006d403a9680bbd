#include "ops/reference/reference_ops.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/routing.h"
#include "tensor/dequantize.h"

namespace topknot::ops {
namespace {

double dot(const float* a, const float* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

class ReferenceOps final : public Ops {
 public:
  std::string_view name() const override { return "reference"; }

  void reserve(const Limits& limits) override {
    row_.resize(static_cast<size_t>(limits.row_elements));
    scores_.resize(static_cast<size_t>(3 * limits.experts));
    gate_.resize(static_cast<size_t>(limits.expert_width));
    up_.resize(static_cast<size_t>(limits.expert_width));
    expert_out_.resize(static_cast<size_t>(limits.row_elements));
  }

  void embed(const Weight& table, std::span<const int32_t> ids, float* out) override {
    for (size_t t = 0; t < ids.size(); ++t) {
      tensor::dequantize_row(table.type, table.row(0, ids[t]), static_cast<uint64_t>(table.in),
                             out + static_cast<int64_t>(t) * table.in);
    }
  }

  void rms_norm(const float* x, int64_t x_stride, const float* weight, int64_t tokens,
                int64_t width, float eps, float* out) override {
    for (int64_t t = 0; t < tokens; ++t) {
      const float* in = x + t * x_stride;
      const double mean_square = dot(in, in, width) / static_cast<double>(width);
      const double scale = 1.0 / std::sqrt(mean_square + static_cast<double>(eps));
      for (int64_t i = 0; i < width; ++i) {
        out[t * width + i] =
            static_cast<float>(static_cast<double>(weight[i]) * static_cast<double>(in[i]) * scale);
      }
    }
  }

  void layer_norm(const float* x, const float* weight, const float* bias, int64_t tokens,
                  int64_t width, float eps, float* out) override {
    for (int64_t t = 0; t < tokens; ++t) {
      const float* in = x + t * width;
      double mean = 0;
      for (int64_t i = 0; i < width; ++i) mean += static_cast<double>(in[i]);
      mean /= static_cast<double>(width);
      double variance = 0;
      for (int64_t i = 0; i < width; ++i) {
        const double centred = static_cast<double>(in[i]) - mean;
        variance += centred * centred;
      }
      variance /= static_cast<double>(width);
      const double scale = 1.0 / std::sqrt(variance + static_cast<double>(eps));
      for (int64_t i = 0; i < width; ++i) {
        const double normed = (static_cast<double>(in[i]) - mean) * scale;
        out[t * width + i] = static_cast<float>(normed * static_cast<double>(weight[i]) +
                                                static_cast<double>(bias[i]));
      }
    }
  }

  void rope(const RopeArgs& args) override {
    const int64_t half = args.dim / 2;
    const bool interleaved = args.flavour == RopeFlavour::kInterleaved;
    for (int64_t t = 0; t < args.tokens; ++t) {
      for (int64_t h = 0; h < args.heads; ++h) {
        float* v = args.data + t * args.row_stride + h * args.head_stride;
        for (int64_t i = 0; i < half; ++i) {
          float& first = v[interleaved ? 2 * i : i];
          float& second = v[interleaved ? 2 * i + 1 : i + half];
          const double c = static_cast<double>(args.cosines[t * half + i]);
          const double s = static_cast<double>(args.sines[t * half + i]);
          const double a = static_cast<double>(first);
          const double b = static_cast<double>(second);
          first = static_cast<float>(a * c - b * s);
          second = static_cast<float>(a * s + b * c);
        }
      }
    }
  }

  void linear(const Weight& w, const float* x, int64_t tokens, float* out) override {
    multiply(w, 0, x, w.in, tokens, out, w.out);
  }

  void linear_heads(const Weight& w, const HeadVectors& v, int64_t tokens) override {
    for (int64_t h = 0; h < w.count; ++h) {
      multiply(w, h, v.x + h * v.x_head, v.x_row, tokens, v.out + h * v.out_head, v.out_row);
    }
  }

  void linear_heads_transposed(const Weight& w, const HeadVectors& v, int64_t tokens) override {
    std::vector<double> sums(static_cast<size_t>(w.in));
    for (int64_t h = 0; h < w.count; ++h) {
      for (int64_t t = 0; t < tokens; ++t) {
        std::fill(sums.begin(), sums.end(), 0.0);
        for (int64_t d = 0; d < w.out; ++d) {
          decode(w, h, d);
          const auto factor = static_cast<double>(v.x[t * v.x_row + h * v.x_head + d]);
          for (size_t c = 0; c < sums.size(); ++c) sums[c] += factor * static_cast<double>(row_[c]);
        }
        float* out = v.out + t * v.out_row + h * v.out_head;
        for (size_t c = 0; c < sums.size(); ++c) out[c] = static_cast<float>(sums[c]);
      }
    }
  }

  void silu_mul(float* gate, const float* up, int64_t n) override {
    for (int64_t i = 0; i < n; ++i) {
      const auto g = static_cast<double>(gate[i]);
      gate[i] = static_cast<float>(g / (1.0 + std::exp(-g)) * static_cast<double>(up[i]));
    }
  }

  void add(float* x, const float* y, int64_t n) override {
    for (int64_t i = 0; i < n; ++i) x[i] += y[i];
  }

  void route(const RouterSpec& spec, const float* logits, const float* bias, int64_t tokens,
             int32_t* ids, float* weights) override {
    const auto experts = static_cast<size_t>(spec.experts);
    const std::span<float> all(scores_);
    for (int64_t t = 0; t < tokens; ++t) {
      std::copy_n(logits + t * spec.experts, experts, scores_.begin());
      route_token(spec, all.first(experts),
                  bias == nullptr ? std::span<const float>() : std::span(bias, experts),
                  all.subspan(experts), ids + t * spec.used, weights + t * spec.used);
    }
  }

  void experts(const ExpertWeights& w, const float* x, const int32_t* ids, const float* weights,
               int64_t used, int64_t tokens, float* out) override {
    const int64_t width = w.down.out;
    for (int64_t t = 0; t < tokens; ++t) {
      float* sum = out + t * width;
      std::fill_n(sum, width, 0.0f);
      for (int64_t k = 0; k < used; ++k) {
        const int64_t expert = ids[t * used + k];
        multiply(w.gate, expert, x + t * w.gate.in, w.gate.in, 1, gate_.data(), w.gate.out);
        multiply(w.up, expert, x + t * w.up.in, w.up.in, 1, up_.data(), w.up.out);
        silu_mul(gate_.data(), up_.data(), w.gate.out);
        multiply(w.down, expert, gate_.data(), w.down.in, 1, expert_out_.data(), width);
        const float factor = weights[t * used + k];
        for (int64_t i = 0; i < width; ++i) sum[i] += factor * expert_out_[static_cast<size_t>(i)];
      }
    }
  }

 private:
  void decode(const Weight& w, int64_t matrix, int64_t row) {
    tensor::dequantize_row(w.type, w.row(matrix, row), static_cast<uint64_t>(w.in), row_.data());
  }

  void multiply(const Weight& w, int64_t matrix, const float* x, int64_t x_row, int64_t tokens,
                float* out, int64_t out_row) {
    for (int64_t r = 0; r < w.out; ++r) {
      decode(w, matrix, r);
      for (int64_t t = 0; t < tokens; ++t) {
        out[t * out_row + r] = static_cast<float>(dot(row_.data(), x + t * x_row, w.in));
      }
    }
  }

  std::vector<float> row_;
  std::vector<float> scores_;
  std::vector<float> gate_, up_, expert_out_;
};

}  // namespace

std::unique_ptr<Ops> make_reference_ops() { return std::make_unique<ReferenceOps>(); }

}  // namespace topknot::ops
