#include "tensor/dtype.h"

#include <algorithm>
#include <array>

#include "base/assert.h"
#include "base/strings.h"

namespace topknot::tensor {
namespace {

constexpr bool kDecoded = true;
constexpr bool kKnownOnly = false;

// Ordered by id. Ids missing here (4, 5, 31 to 33, 36 to 38) were removed from ggml.
constexpr std::array kTypes = {
    DTypeInfo{DType::kF32, "F32", 1, 4, kDecoded},
    DTypeInfo{DType::kF16, "F16", 1, 2, kDecoded},
    DTypeInfo{DType::kQ4_0, "Q4_0", 32, 18, kDecoded},
    DTypeInfo{DType::kQ4_1, "Q4_1", 32, 20, kDecoded},
    DTypeInfo{DType::kQ5_0, "Q5_0", 32, 22, kDecoded},
    DTypeInfo{DType::kQ5_1, "Q5_1", 32, 24, kDecoded},
    DTypeInfo{DType::kQ8_0, "Q8_0", 32, 34, kDecoded},
    DTypeInfo{DType::kQ8_1, "Q8_1", 32, 36, kKnownOnly},
    DTypeInfo{DType::kQ2_K, "Q2_K", 256, 84, kDecoded},
    DTypeInfo{DType::kQ3_K, "Q3_K", 256, 110, kDecoded},
    DTypeInfo{DType::kQ4_K, "Q4_K", 256, 144, kDecoded},
    DTypeInfo{DType::kQ5_K, "Q5_K", 256, 176, kDecoded},
    DTypeInfo{DType::kQ6_K, "Q6_K", 256, 210, kDecoded},
    DTypeInfo{DType::kQ8_K, "Q8_K", 256, 292, kKnownOnly},
    DTypeInfo{DType::kIQ2_XXS, "IQ2_XXS", 256, 66, kDecoded},
    DTypeInfo{DType::kIQ2_XS, "IQ2_XS", 256, 74, kDecoded},
    DTypeInfo{DType::kIQ3_XXS, "IQ3_XXS", 256, 98, kDecoded},
    DTypeInfo{DType::kIQ1_S, "IQ1_S", 256, 50, kDecoded},
    DTypeInfo{DType::kIQ4_NL, "IQ4_NL", 32, 18, kDecoded},
    DTypeInfo{DType::kIQ3_S, "IQ3_S", 256, 110, kDecoded},
    DTypeInfo{DType::kIQ2_S, "IQ2_S", 256, 82, kDecoded},
    DTypeInfo{DType::kIQ4_XS, "IQ4_XS", 256, 136, kDecoded},
    DTypeInfo{DType::kI8, "I8", 1, 1, kKnownOnly},
    DTypeInfo{DType::kI16, "I16", 1, 2, kKnownOnly},
    DTypeInfo{DType::kI32, "I32", 1, 4, kKnownOnly},
    DTypeInfo{DType::kI64, "I64", 1, 8, kKnownOnly},
    DTypeInfo{DType::kF64, "F64", 1, 8, kKnownOnly},
    DTypeInfo{DType::kIQ1_M, "IQ1_M", 256, 56, kDecoded},
    DTypeInfo{DType::kBF16, "BF16", 1, 2, kDecoded},
    DTypeInfo{DType::kTQ1_0, "TQ1_0", 256, 54, kKnownOnly},
    DTypeInfo{DType::kTQ2_0, "TQ2_0", 256, 66, kKnownOnly},
    DTypeInfo{DType::kMXFP4, "MXFP4", 32, 17, kDecoded},
    DTypeInfo{DType::kNVFP4, "NVFP4", 64, 36, kDecoded},
    DTypeInfo{DType::kQ1_0, "Q1_0", 128, 18, kKnownOnly},
    DTypeInfo{DType::kQ2_0, "Q2_0", 64, 18, kKnownOnly},
};

constexpr bool by_id(const DTypeInfo& a, const DTypeInfo& b) { return a.type < b.type; }
static_assert(std::is_sorted(kTypes.begin(), kTypes.end(), by_id), "find_dtype searches by id");

struct NamedId {
  uint32_t id;
  const char* name;
};

// Ids that ggml gave up, and those that ik_llama.cpp keeps to itself: only for messages, so that a
// user can find the tensor's type in the list of the program that wrote the file.
constexpr NamedId kRemoved[] = {{4, "Q4_2"},        {5, "Q4_3"},       {31, "Q4_0_4_4"},
                                {32, "Q4_0_4_8"},   {33, "Q4_0_8_8"},  {36, "IQ4_NL_4_4"},
                                {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"}};
constexpr NamedId kIkLlama[] = {
    {133, "Q6_0"},      {134, "IQ1_BN"},     {135, "IQ2_BN"},    {137, "IQ2_K"},
    {138, "IQ3_K"},     {139, "IQ4_K"},      {140, "IQ5_K"},     {141, "IQ6_K"},
    {144, "IQ4_KS"},    {145, "IQ2_KS"},     {146, "IQ4_KSS"},   {151, "Q8_KV"},
    {152, "IQ5_KS"},    {153, "IQ2_KT"},     {154, "IQ3_KT"},    {155, "IQ4_KT"},
    {156, "IQ3_KS"},    {157, "IQ2_KL"},     {158, "IQ1_KT"},    {202, "Q4_0_R8"},
    {206, "Q5_0_R4"},   {208, "Q8_0_R8"},    {210, "Q2_K_R4"},   {211, "Q3_K_R4"},
    {212, "Q4_K_R4"},   {213, "Q5_K_R4"},    {214, "Q6_K_R4"},   {216, "IQ2_XXS_R4"},
    {217, "IQ2_XS_R4"}, {218, "IQ3_XXS_R4"}, {219, "IQ1_S_R4"},  {220, "IQ4_NL_R4"},
    {221, "IQ3_S_R4"},  {222, "IQ2_S_R4"},   {223, "IQ4_XS_R8"}, {229, "IQ1_M_R4"},
    {230, "BF16_R16"},  {233, "Q6_0_R4"},    {335, "IQ2_BN_R4"}, {337, "IQ2_K_R4"},
    {338, "IQ3_K_R4"},  {339, "IQ4_K_R4"},   {340, "IQ5_K_R4"},  {344, "IQ4_KS_R4"},
    {352, "IQ5_KS_R4"}, {397, "Q8_K_R16"},   {398, "Q8_KV_R8"},  {399, "Q8_K_R8"},
};

}  // namespace

std::span<const DTypeInfo> dtypes() { return kTypes; }

const DTypeInfo* find_dtype(uint32_t ggml_id) {
  const auto* const found = std::lower_bound(
      kTypes.data(), kTypes.data() + kTypes.size(), ggml_id,
      [](const DTypeInfo& info, uint32_t id) { return static_cast<uint32_t>(info.type) < id; });
  const bool known =
      found != kTypes.data() + kTypes.size() && static_cast<uint32_t>(found->type) == ggml_id;
  return known ? found : nullptr;
}

std::string describe_unknown_dtype(uint32_t ggml_id) {
  for (const NamedId& removed : kRemoved) {
    if (removed.id == ggml_id)
      return cat("type id ", ggml_id, " (", removed.name, ", removed from ggml)");
  }
  for (const NamedId& type : kIkLlama) {
    if (type.id == ggml_id) {
      return cat("type id ", ggml_id, " (", type.name, ", private to ik_llama.cpp)");
    }
  }
  return cat("type id ", ggml_id, " (newer than this build, or private to another engine)");
}

const DTypeInfo& dtype_info(DType type) {
  const DTypeInfo* const info = find_dtype(static_cast<uint32_t>(type));
  TOPKNOT_ASSERT(info != nullptr);
  return *info;
}

std::string_view dtype_name(DType type) { return dtype_info(type).name; }

uint64_t row_bytes(DType type, uint64_t elements) {
  const DTypeInfo& info = dtype_info(type);
  TOPKNOT_ASSERT(elements % info.block_elements == 0);
  return elements / info.block_elements * info.block_bytes;
}

}  // namespace topknot::tensor
