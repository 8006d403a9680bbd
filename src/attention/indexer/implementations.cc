#include "attention/indexer/implementations.h"

#include "attention/indexer/indexer.h"

namespace topknot::attention {
namespace {

using namespace capability;

constexpr Missing kNoGpuKernel = {"the indexer has no GPU kernels in this version", "--device cpu"};
constexpr Rule kCuda = {Fact::kDevice, exactly(DeviceKind::kCuda), "it runs on a GPU",
                        "--device cuda:0"};
constexpr Rule kHost = {Fact::kDevice, exactly(DeviceKind::kCpu), "it runs on the host",
                        "--device cpu"};
constexpr Rule kAvx512 = {Fact::kInstructions, at_least(InstructionLevel::kAvx512),
                          "its loops are compiled for x86-64-v4", "--kernels auto"};
constexpr Rule kAvx2 = {Fact::kInstructions, at_least(InstructionLevel::kAvx2),
                        "its loops are compiled for x86-64-v3", "--kernels auto"};
constexpr Rule kFormat = {Fact::kKvFormat, one_of(KvFormat::kF32, KvFormat::kBf16),
                          "index keys of no other format are widened", "--kv-cache-dtype bf16"};
constexpr Rule kBounded = {Fact::kWorkspaceBytes, at_most(kMaxIndexerWorkspaceBytes),
                           "score rows and widened tiles are kept for each thread",
                           "fewer threads (-t) or a smaller context (-c)"};

constexpr Rule kCudaRules[] = {kCuda};
constexpr Rule kHostRules[] = {kHost};
constexpr Rule kAvx512Rules[] = {kHost, kAvx512, kFormat, kBounded};
constexpr Rule kAvx2Rules[] = {kHost, kAvx2, kFormat, kBounded};
constexpr Rule kPortableRules[] = {kHost, kFormat, kBounded};
constexpr Rule kReferenceRules[] = {kHost, kFormat};

constexpr Implementation kIndexer[] = {
    {"cuda", "scores streamed over key tiles on a GPU", kCudaRules, &kNoGpuKernel},
    {"avx512", "tiles of 128 keys against all heads of a group of queries", kAvx512Rules},
    {"avx2", "the same with 256-bit vectors", kAvx2Rules},
    {"portable", "the same on any processor", kPortableRules},
    {"reference", "one scalar thread with double sums: the oracle", kReferenceRules},
};
constexpr Implementation kTopK[] = {
    {"cuda", "exact selection on a GPU", kCudaRules, &kNoGpuKernel},
    {"host", "exact, linear in the row; lower index first on ties", kHostRules},
};

}  // namespace

std::span<const Implementation> indexer_implementations() { return kIndexer; }
std::span<const Implementation> top_k_implementations() { return kTopK; }

}  // namespace topknot::attention
