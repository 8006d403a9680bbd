#include "attention/indexer/implementations.h"

#include "attention/indexer/cuda/limits.h"
#include "attention/indexer/indexer.h"
#include "capability/gpu_code.h"

namespace topknot::attention {
namespace {

using namespace capability;

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

constexpr Rule kSm80 = {Fact::kSm, at_least(80),
                        "mma.sync of bf16 and cp.async exist from sm_80 on"};
constexpr Rule kScoresFit = {Fact::kSmemPerBlock, at_least(kIndexScoresSharedBytes),
                             "queries in flight, or a ring of keys, are in shared memory"};
constexpr Rule kHeadDim = {Fact::kIndexHeadDim, multiple_of(16),
                           "a step of mma.sync is 16 dimensions"};
constexpr Rule kBf16Keys = {Fact::kKvFormat, exactly(KvFormat::kBf16),
                            "keys are operands of mma.sync as they are", "--kv-cache-dtype bf16"};
constexpr Rule kFp8Keys = {Fact::kKvFormat, exactly(KvFormat::kFp8Ds),
                           "keys are e4m3 with one scale a row", "--kv-cache-dtype fp8_ds"};
constexpr Rule kFp8HeadDim = {Fact::kIndexHeadDim, exactly(int64_t{kFp8IndexHeadDim}),
                              "keys are rotated by the Hadamard matrix of 128"};
constexpr Rule kListsFit = {Fact::kSmemPerBlock, at_least(kTopKSharedBytes),
                            "the candidates of a row are in shared memory"};
constexpr Rule kCudaRules[] = {kCuda, kSm80, kScoresFit, kHeadDim, kBf16Keys};
constexpr Rule kCudaFp8Rules[] = {kCuda, kSm80, kScoresFit, kFp8HeadDim, kFp8Keys};
constexpr Rule kCudaTopKRules[] = {kCuda, kSm80, kListsFit};
constexpr Rule kHostRules[] = {kHost};
constexpr Rule kAvx512Rules[] = {kHost, kAvx512, kFormat, kBounded};
constexpr Rule kAvx2Rules[] = {kHost, kAvx2, kFormat, kBounded};
constexpr Rule kPortableRules[] = {kHost, kFormat, kBounded};
constexpr Rule kReferenceRules[] = {kHost, kFormat};

constexpr Implementation kIndexer[] = {
    {"cuda", "bf16 keys on a GPU's tensor cores", kCudaRules, kGpuCodeMissing},
    {"cuda_fp8", "fp8 keys, rotated with the queries, as f16 on a GPU's tensor cores",
     kCudaFp8Rules, kGpuCodeMissing},
    {"avx512", "tiles of 128 keys against all heads of a group of queries", kAvx512Rules},
    {"avx2", "the same with 256-bit vectors", kAvx2Rules},
    {"portable", "the same on any processor", kPortableRules},
    {"reference", "one scalar thread with double sums: the oracle", kReferenceRules},
};
constexpr Implementation kTopK[] = {
    {"cuda", "exact radix selection on a GPU; lower index first on ties", kCudaTopKRules,
     kGpuCodeMissing},
    {"host", "exact, linear in the row; lower index first on ties", kHostRules},
};

}  // namespace

std::span<const Implementation> indexer_implementations() { return kIndexer; }
std::span<const Implementation> top_k_implementations() { return kTopK; }

}  // namespace topknot::attention
