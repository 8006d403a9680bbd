// Element types of GGUF tensors: ids, names and block sizes of every type ggml defines, and which
// of them this build can decode. Source: ggml's type table (ids are part of the file format).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace topknot::tensor {

// The values are ggml's ids, so they are stable and may be written to files.
enum class DType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ8_1 = 9,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kQ8_K = 15,
  kIQ2_XXS = 16,
  kIQ2_XS = 17,
  kIQ3_XXS = 18,
  kIQ1_S = 19,
  kIQ4_NL = 20,
  kIQ3_S = 21,
  kIQ2_S = 22,
  kIQ4_XS = 23,
  kI8 = 24,
  kI16 = 25,
  kI32 = 26,
  kI64 = 27,
  kF64 = 28,
  kIQ1_M = 29,
  kBF16 = 30,
  kTQ1_0 = 34,
  kTQ2_0 = 35,
  kMXFP4 = 39,
  kNVFP4 = 40,
  kQ1_0 = 41,
  kQ2_0 = 42,
};

struct DTypeInfo {
  DType type;
  std::string_view name;    // as ggml spells it: "Q4_K", "BF16"
  uint32_t block_elements;  // elements of a row that share one block
  uint32_t block_bytes;
  bool decoded;  // dequantize_row() and the products know it
};

// Every known type, by id.
std::span<const DTypeInfo> dtypes();

// Null for an id that is removed, private to another engine, or newer than this table.
const DTypeInfo* find_dtype(uint32_t ggml_id);

// For messages about an id find_dtype() does not know: "type id 139 (IQ4_K, private to
// ik_llama.cpp)".
std::string describe_unknown_dtype(uint32_t ggml_id);

const DTypeInfo& dtype_info(DType type);
std::string_view dtype_name(DType type);

// Bytes of `elements` consecutive elements; `elements` must be a multiple of the block.
uint64_t row_bytes(DType type, uint64_t elements);

}  // namespace topknot::tensor
