// Facts: what is asked of an implementation, as plain numbers. Of the device (kind, sm, shared
// memory per block), of the model (heads, widths, top-k) and of the request (cache format, page
// size). Read from the machine, from a model's metadata or from a file: a rule cannot tell.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "device/kind.h"

namespace topknot::capability {

enum class Fact : uint8_t {
  kDevice,        // DeviceKind
  kSm,            // 80, 86, 89, 90, 100, 120, 121; not ordered by ability
  kSmemPerBlock,  // bytes, opt-in limit
  kSelection,     // Selection
  kHeads,         // query heads on this rank
  kKvLoraRank,
  kQkRopeHeadDim,
  kTopk,      // keys read by a query
  kKvFormat,  // KvFormat
  kPageTokens,
  kIndexHeads,
  kIndexHeadDim,
  kIndexRopeDim,
  kDtype,  // ActivationType
  kQkNopeHeadDim,
  kHeadSize,        // width of a cached latent row: kv_lora_rank + qk_rope_head_dim
  kArchitecture,    // Architecture
  kWeights,         // WeightFormat
  kTensorRanks,     // ranks that share the heads
  kContextRanks,    // ranks that share the cached positions
  kSequences,       // decoded at once
  kInstructions,    // InstructionLevel of the host
  kWeightType,      // tensor::DType
  kWorkspaceBytes,  // of one operation's scratch
  kCount,
};
inline constexpr size_t kFactCount = static_cast<size_t>(Fact::kCount);

using device::DeviceKind;
enum class Selection : int64_t { kSparse, kDense };  // over the indexer's top-k, or over every key
// kFp8Ds: packed rows of 512 e4m3, 4 scales and 64 bf16. kFp8E4m3: plain e4m3, one scale a tensor.
enum class KvFormat : int64_t { kF32, kBf16, kFp8Ds, kQ8_0, kF16, kFp8E4m3 };
enum class ActivationType : int64_t { kF32, kBf16, kF16 };
// As GGUF files call them.
enum class Architecture : int64_t {
  kDeepseek2,
  kDeepseek32,
  kGlmDsa,
  kGlm5Next,
  kDeepseek4,
  kOther,
};
enum class WeightFormat : int64_t { kGguf, kSafetensors };
// Of x86 processors, in order: each has what the one before it has. Others are portable.
enum class InstructionLevel : int64_t { kPortable, kAvx2, kAvx512 };

// The field's name of a fact: "kv_lora_rank".
std::string_view fact_name(Fact fact);
std::optional<Fact> fact_from_name(std::string_view name);
// A value as people write it: KvFormat 1 is "bf16", heads 64 is "64".
std::string fact_value(Fact fact, int64_t value);
// The names of a fact's values, by value; empty for a fact that is a number.
std::span<const std::string_view> fact_value_names(Fact fact);

std::string_view kv_format_name(KvFormat format);
std::optional<KvFormat> kv_format_from_name(std::string_view name);
std::string_view activation_name(ActivationType type);

class Facts {
 public:
  template <class T>
  Facts& set(Fact fact, T value) {
    values_[static_cast<size_t>(fact)] = static_cast<int64_t>(value);
    return *this;
  }
  std::optional<int64_t> operator[](Fact fact) const { return values_[static_cast<size_t>(fact)]; }

  // "heads=64 kv_lora_rank=512 ...", in the order of Fact, unknown facts left out.
  std::string to_string() const;

 private:
  std::array<std::optional<int64_t>, kFactCount> values_;
};

}  // namespace topknot::capability
