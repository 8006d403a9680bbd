#include "kvcache/implementations.h"

namespace topknot::kvcache {
namespace {

using namespace capability;

constexpr Missing kNoGpuKernel = {"cache rows have no GPU kernels in this version", "--device cpu"};
constexpr Rule kCuda = {Fact::kDevice, exactly(DeviceKind::kCuda), "it runs on a GPU",
                        "--device cuda:0"};
constexpr Rule kHost = {Fact::kDevice, exactly(DeviceKind::kCpu), "it runs on the host",
                        "--device cpu"};
constexpr Rule kCudaRules[] = {kCuda};
constexpr Rule kMapRules[] = {kHost};
constexpr Rule kWriterRules[] = {
    kHost,
    {Fact::kKvFormat, one_of(KvFormat::kF32, KvFormat::kBf16), "write_row knows no other format",
     "--kv-cache-dtype bf16"},
};
constexpr Implementation kMap[] = {
    {"cuda", "one kernel through the block table", kCudaRules, &kNoGpuKernel},
    {"host", "through the block table", kMapRules},
};
constexpr Implementation kWriter[] = {
    {"cuda", "rows converted and scattered by one kernel", kCudaRules, &kNoGpuKernel},
    {"host", "row by row", kWriterRules},
};

}  // namespace

std::span<const Implementation> slot_map_implementations() { return kMap; }
std::span<const Implementation> cache_writer_implementations() { return kWriter; }

}  // namespace topknot::kvcache
