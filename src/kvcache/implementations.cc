#include "kvcache/implementations.h"

#include "capability/gpu_code.h"

namespace topknot::kvcache {
namespace {

using namespace capability;

constexpr Missing kNoGpuKernel = {"no GPU kernel writes cache rows in this version",
                                  "--device cpu"};
constexpr Rule kCuda = {Fact::kDevice, exactly(DeviceKind::kCuda), "it runs on a GPU",
                        "--device cuda:0"};
constexpr Rule kHost = {Fact::kDevice, exactly(DeviceKind::kCpu), "it runs on the host",
                        "--device cpu"};
constexpr Rule kCudaRules[] = {kCuda};
constexpr Rule kCudaMapRules[] = {kCuda,
                                  {Fact::kSm, at_least(80), "GPU code is compiled from sm_80 on"}};
constexpr Rule kMapRules[] = {kHost};
constexpr Rule kWriterRules[] = {
    kHost,
    {Fact::kKvFormat, one_of(KvFormat::kF32, KvFormat::kBf16), "write_row knows no other format",
     "--kv-cache-dtype bf16"},
};
constexpr Implementation kMap[] = {
    {"cuda", "one kernel through the block table", kCudaMapRules, kGpuCodeMissing},
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
