#include "attention/indexer/cuda/top_k.h"

namespace topknot::attention {
namespace {

// Twice the multiprocessors of the largest devices: more parts of a row only cost more launches.
constexpr int64_t kWantedBlocks = 256;
constexpr int kUsualParts = 64;

constexpr int64_t kRowBytes = kSplitTopKBins * sizeof(uint32_t) + sizeof(TopKCounters) +
                              kMaxSplitTopKParts * sizeof(TopKPart) +
                              kSplitTopKListed * sizeof(TopKCandidate);

int parts_of(int64_t rows) {
  const int64_t parts = kWantedBlocks / rows;
  return static_cast<int>(parts < 1 ? 1 : parts > kUsualParts ? kUsualParts : parts);
}

}  // namespace

int64_t split_top_k_workspace_bytes(int64_t rows) { return rows * kRowBytes; }

cudaError_t launch_split_top_k(const TopKArgs& args, void* workspace, cudaStream_t stream) {
  if (args.k < 1 || args.rows > INT32_MAX / kUsualParts || args.scores_stride % 4 != 0) {
    return cudaErrorInvalidValue;
  }
  if (args.rows == 0) return cudaSuccess;
  SplitTopKArgs split = {};
  split.top_k = args;
  split.parts = parts_of(args.rows);
  split.histogram = static_cast<uint32_t*>(workspace);
  split.counters = reinterpret_cast<TopKCounters*>(split.histogram + args.rows * kSplitTopKBins);
  split.part_table = reinterpret_cast<TopKPart*>(split.counters + args.rows);
  split.candidates =
      reinterpret_cast<TopKCandidate*>(split.part_table + args.rows * kMaxSplitTopKParts);
  const cudaError_t error = launch_top_k_histogram(split, stream);
  return error == cudaSuccess ? launch_top_k_gather(split, stream) : error;
}

}  // namespace topknot::attention
