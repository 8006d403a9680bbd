#include "comm/implementations.h"

namespace topknot::comm {
namespace {

using namespace capability;

constexpr Missing kNotWritten = {"this version runs a model in one process",
                                 "--tensor-parallel-size 1"};
constexpr Rule kNcclRules[] = {
    {Fact::kDevice, exactly(DeviceKind::kCuda), "NCCL moves device memory", "--device cuda:0"},
};
constexpr Rule kMpiRules[] = {
    {Fact::kDevice, exactly(DeviceKind::kCpu), "buffers are in host memory", "--device cpu"},
};
constexpr Implementation kList[] = {
    {"nccl", "NCCL between the GPUs of one or several hosts", kNcclRules, &kNotWritten},
    {"mpi", "MPI between processes on hosts", kMpiRules, &kNotWritten},
};

}  // namespace

std::span<const Implementation> collective_implementations() { return kList; }

}  // namespace topknot::comm
