// The operations of the forward pass, on rows of fp32 values. One interface, one implementation for
// each kind of device: reference (scalar, double sums: the oracle) and cpu (vectors, threads).
//
// Arrays are row-major, innermost contiguous; T tokens. An output may not alias an input unless
// said. The order in which an output element is summed depends on the width alone, never on T, on
// the chunking of a prompt or on threads: equal inputs give bit-identical outputs. No operation
// allocates after reserve().
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tensor/weight.h"

namespace topknot::ops {

using tensor::Weight;

// How a rotation pairs elements of a vector of length d: (2i, 2i+1), or (i, i + d/2).
enum class RopeFlavour : uint8_t { kInterleaved, kHalfSplit };

// Vectors to rotate in place: vector (t, h) starts at data + t * row_stride + h * head_stride.
struct RopeArgs {
  float* data = nullptr;
  int64_t tokens = 0;
  int64_t heads = 0;
  int64_t row_stride = 0;   // elements
  int64_t head_stride = 0;  // elements
  int64_t dim = 0;          // rotated elements of each vector, even
  RopeFlavour flavour = RopeFlavour::kInterleaved;
  const float* cosines = nullptr;  // [T, dim/2]
  const float* sines = nullptr;    // [T, dim/2]
};

// Routing of models.md section 5. Scores are fp32; the bias is for selection only; the lower id
// wins ties.
enum class Gating : uint8_t { kSoftmax, kSigmoid };
struct RouterSpec {
  Gating gating = Gating::kSigmoid;
  int64_t experts = 0;
  int64_t used = 0;
  int64_t groups = 1;
  int64_t groups_used = 1;
  bool normalise = true;
  float scale = 1;
};

struct ExpertWeights {
  Weight gate, up;  // [E][F, D]
  Weight down;      // [E][D, F]
};

class Ops {
 public:
  virtual ~Ops() = default;
  virtual std::string_view name() const = 0;

  // Called once before the first operation: the longest row, most tokens of a call, most
  // assignments of tokens to experts, the widest expert.
  struct Limits {
    int64_t row_elements = 0;
    int64_t tokens = 0;
    int64_t experts = 0;
    int64_t experts_used = 0;
    int64_t expert_width = 0;
  };
  virtual void reserve(const Limits& limits) = 0;

  // out[t] = row ids[t] of table [vocab, D]
  virtual void embed(const Weight& table, std::span<const int32_t> ids, float* out) = 0;
  // out[t] = weight * x[t] / sqrt(mean(x[t]^2) + eps). x rows are `x_stride` apart; out rows
  // `width`.
  virtual void rms_norm(const float* x, int64_t x_stride, const float* weight, int64_t tokens,
                        int64_t width, float eps, float* out) = 0;
  // out[t] = weight * (x[t] - mean) / sqrt(variance + eps) + bias; in place is allowed
  virtual void layer_norm(const float* x, const float* weight, const float* bias, int64_t tokens,
                          int64_t width, float eps, float* out) = 0;
  virtual void rope(const RopeArgs& args) = 0;
  // out[t] = W x[t]: x [T, in], out [T, out]
  virtual void linear(const Weight& w, const float* x, int64_t tokens, float* out) = 0;
  // For each head h: out[t,h] = W_h x[t,h]. Vector (t,h) of x starts at x + t*x_row + h*x_head; of
  // out at out + t*out_row + h*w.out. w.count heads.
  struct HeadVectors {
    const float* x = nullptr;
    int64_t x_row = 0;
    int64_t x_head = 0;
    float* out = nullptr;
    int64_t out_row = 0;
    int64_t out_head = 0;
  };
  virtual void linear_heads(const Weight& w, const HeadVectors& v, int64_t tokens) = 0;
  // The same with W_h^T: out[t,h] (w.in wide) = sum over d of x[t,h,d] * row d of W_h. For files
  // that keep kv_b in one piece.
  virtual void linear_heads_transposed(const Weight& w, const HeadVectors& v, int64_t tokens) = 0;
  // gate = silu(gate) * up, n elements
  virtual void silu_mul(float* gate, const float* up, int64_t n) = 0;
  // x += y
  virtual void add(float* x, const float* y, int64_t n) = 0;
  // ids, weights [T, used], best first; logits [T, experts]; bias may be null
  virtual void route(const RouterSpec& spec, const float* logits, const float* bias, int64_t tokens,
                     int32_t* ids, float* weights) = 0;
  // out[t] = sum over k of weights[t,k] * down(silu(gate x) * up x) of expert ids[t,k]; x, out [T,
  // D]
  virtual void experts(const ExpertWeights& w, const float* x, const int32_t* ids,
                       const float* weights, int64_t used, int64_t tokens, float* out) = 0;
};

}  // namespace topknot::ops
