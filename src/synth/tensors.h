// The tensors of a shape: exact GGUF names and ne[], what their values are drawn from, their types.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/stream_writer.h"
#include "synth/blocks.h"
#include "synth/shape.h"
#include "topknot/error.h"

namespace topknot::synth {

struct TensorPlan {
  gguf::TensorSpec spec;
  Distribution values;
};

inline constexpr size_t kMaxTypeRules = 1024;
inline constexpr size_t kMaxPatternBytes = 4096;

// "ffn_.*_exps=q4_k": tensors whose name the regular expression occurs in get the type; a type
// alone is for all. Norms and biases stay F32 whatever the rules say.
struct TypeRule {
  std::string pattern;
  tensor::DType type = tensor::DType::kF16;
  // kInvalidArgument: no type of that name, or one that no weight can have; no regular expression.
  static Result<TypeRule> parse(std::string_view text);
};

// In the order of published files: output, norm and embedding, then block by block, by name. All
// F32 until choose_types().
//   weights   N(0, gain / sqrt(fan in)): activations keep their scale from layer to layer
//   embedding N(0, 0.5), norms N(1, 0.05), biases N(0, 0.02)
std::vector<TensorPlan> plan_tensors(const ModelShape& shape, double gain);

// The last rule that matches counts, and F32 where none does. Rows that are no whole blocks of
// their type get the nearest type of 32 elements (gguf.md 3.3), and F16 where those do not fit.
void choose_types(std::span<const TypeRule> rules, std::vector<TensorPlan>* tensors);

}  // namespace topknot::synth
