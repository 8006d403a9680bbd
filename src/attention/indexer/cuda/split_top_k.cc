// The split selection: its workspace, how many blocks take part in a row, and its two launches.
#include "attention/indexer/cuda/top_k.h"

namespace topknot::attention {
namespace {

// About two blocks for each multiprocessor of the largest devices.
constexpr int64_t kWantedBlocks = 256;

int64_t parts_of(int64_t rows) {
  const int64_t parts = kWantedBlocks / rows;
  return parts < 1 ? 1 : parts > kMaxSplitTopKParts ? kMaxSplitTopKParts : parts;
}

constexpr int64_t kPartBytes =
    kSplitTopKPartListed * sizeof(TopKCandidate) + sizeof(uint32_t) * 4;  // keeps 16-byte alignment

}  // namespace

int64_t split_top_k_workspace_bytes(int64_t rows) {
  return rows * (kSplitTopKBins * int64_t{sizeof(uint32_t)} + 16 + parts_of(rows) * kPartBytes);
}

cudaError_t launch_split_top_k(const TopKArgs& args, void* workspace, cudaStream_t stream) {
  if (args.k < 1 || args.rows > INT32_MAX / kMaxSplitTopKParts || args.scores_stride % 4 != 0) {
    return cudaErrorInvalidValue;
  }
  if (args.rows == 0) return cudaSuccess;
  const int64_t parts = parts_of(args.rows);
  SplitTopKArgs split = {};
  split.top_k = args;
  split.parts = static_cast<int32_t>(parts);
  split.histogram = static_cast<uint32_t*>(workspace);
  split.candidates = reinterpret_cast<TopKCandidate*>(split.histogram + args.rows * kSplitTopKBins);
  split.arrived =
      reinterpret_cast<uint32_t*>(split.candidates + args.rows * parts * kSplitTopKPartListed);
  split.listed = split.arrived + args.rows;
  const cudaError_t error = launch_top_k_histogram(split, stream);
  return error == cudaSuccess ? launch_top_k_gather(split, stream) : error;
}

}  // namespace topknot::attention
