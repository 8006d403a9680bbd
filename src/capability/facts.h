// Facts: what is asked of an implementation, as plain numbers. Of the device (kind, sm, shared
// memory per block), of the model (heads, widths, top-k) and of the request (cache format, page
// size). Read from the machine, from a model's metadata or from a file: a rule cannot tell.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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
  kDtype,           // ActivationType
  kInstructions,    // InstructionLevel of the host
  kWeightType,      // tensor::DType
  kWorkspaceBytes,  // of one operation's scratch
  kRanks,           // processes that share a model
  kCount,
};
inline constexpr size_t kFactCount = static_cast<size_t>(Fact::kCount);

enum class DeviceKind : int64_t { kCpu, kCuda };
enum class Selection : int64_t { kSparse, kDense };  // over the indexer's top-k, or over every key
enum class KvFormat : int64_t { kF32, kBf16, kFp8Ds, kQ8_0 };
enum class ActivationType : int64_t { kF32, kBf16, kF16 };
// Of x86 processors, in order: each has what the one before it has. Others are portable.
enum class InstructionLevel : int64_t { kPortable, kAvx2, kAvx512 };

// The field's name of a fact: "kv_lora_rank".
std::string_view fact_name(Fact fact);
// A value as people write it: KvFormat 1 is "bf16", heads 64 is "64".
std::string fact_value(Fact fact, int64_t value);

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
