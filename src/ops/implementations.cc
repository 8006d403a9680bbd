#include "ops/implementations.h"

#include <algorithm>
#include <vector>

#include "base/assert.h"
#include "ops/cpu/kernels.h"
#include "tensor/dtype.h"

namespace topknot::ops {
namespace {

using namespace capability;

constexpr Missing kNoGpuKernel = {"operations have no GPU kernels in this version", "--device cpu"};
constexpr Missing kNotBuilt = {"this program was built for another kind of processor",
                               "--kernels portable"};

constexpr Rule kCuda = {Fact::kDevice, exactly(DeviceKind::kCuda), "it runs on a GPU",
                        "--device cuda:0"};
constexpr Rule kHost = {Fact::kDevice, exactly(DeviceKind::kCpu), "it runs on the host",
                        "--device cpu"};
constexpr Rule kAvx512 = {Fact::kInstructions, at_least(InstructionLevel::kAvx512),
                          "its loops are compiled for x86-64-v4", "--kernels auto"};
constexpr Rule kAvx2 = {Fact::kInstructions, at_least(InstructionLevel::kAvx2),
                        "its loops are compiled for x86-64-v3", "--kernels auto"};

constexpr Rule kCudaRules[] = {kCuda};
constexpr Rule kHostRules[] = {kHost};
constexpr Rule kAvx512Rules[] = {kHost, kAvx512};
constexpr Rule kAvx2Rules[] = {kHost, kAvx2};

const Missing* missing(std::string_view kernels) {
  static const auto& built = *new std::vector<std::string_view>(built_kernels());
  return std::find(built.begin(), built.end(), kernels) != built.end() ? nullptr : &kNotBuilt;
}

// The types that blocks can be read in are those of the table in tensor/dtype.cc.
Rule decoded_types() {
  Accepts accepts{Accepts::Kind::kOneOf, {}, 0};
  for (const tensor::DTypeInfo& type : tensor::dtypes()) {
    if (!type.decoded) continue;
    TOPKNOT_ASSERT(accepts.count < Accepts::kMaxValues);
    accepts.values[accepts.count++] = static_cast<int64_t>(type.type);
  }
  return {Fact::kWeightType, accepts, "blocks of no other type can be read in this version",
          "a file of other types"};
}

struct HostRules {
  std::vector<Rule> avx512, avx2, any, cuda;
};

const HostRules& product_rules() {
  static const HostRules& rules = *new HostRules{{kHost, kAvx512, decoded_types()},
                                                 {kHost, kAvx2, decoded_types()},
                                                 {kHost, decoded_types()},
                                                 {kCuda}};
  return rules;
}

}  // namespace

std::span<const Implementation> vector_implementations() {
  static const Implementation kList[] = {
      {"cuda", "GPU kernels", kCudaRules, &kNoGpuKernel},
      {"avx512", "512-bit vectors on host threads", kAvx512Rules, missing("avx512")},
      {"avx2", "256-bit vectors on host threads", kAvx2Rules, missing("avx2")},
      {"portable", "any processor, host threads", kHostRules},
      {"reference", "one scalar thread with double sums: the oracle", kHostRules},
  };
  return kList;
}

std::span<const Implementation> product_implementations() {
  static const Implementation kList[] = {
      {"cuda", "products on compressed blocks on a GPU", product_rules().cuda, &kNoGpuKernel},
      {"avx512", "rows decoded a few at a time, for all tokens at once", product_rules().avx512,
       missing("avx512")},
      {"avx2", "the same with 256-bit vectors", product_rules().avx2, missing("avx2")},
      {"portable", "the same on any processor", product_rules().any},
      {"reference", "one scalar thread with double sums: the oracle", product_rules().any},
  };
  return kList;
}

std::span<const Implementation> router_implementations() { return vector_implementations(); }

std::span<const Implementation> sampling_implementations() {
  // Logits of a GPU would come to the host: the same code serves every device.
  static constexpr Implementation kList[] = {
      {"host", "one thread over the logits of a token", {}},
  };
  return kList;
}

}  // namespace topknot::ops
