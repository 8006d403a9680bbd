// The split selection: its workspace, how many blocks take part in a row, and its two launches.
#include <cstddef>

#include "attention/indexer/cuda/top_k.h"

namespace topknot::attention {
namespace {

// About two blocks for each multiprocessor of the largest devices.
constexpr int64_t kWantedBlocks = 256;

int64_t parts_of(int64_t rows) {
  const int64_t parts = kWantedBlocks / rows;
  return parts < 1 ? 1 : parts > kMaxSplitTopKParts ? kMaxSplitTopKParts : parts;
}

// No more rows than max_rows have more parts together.
int64_t most_parts(int64_t max_rows) { return max_rows > kWantedBlocks ? max_rows : kWantedBlocks; }

constexpr int64_t round_to_line(int64_t bytes) { return (bytes + 255) / 256 * 256; }

constexpr int64_t kHistogramBytes = kSplitTopKBins * int64_t{sizeof(uint32_t)};
constexpr int64_t kListBytes = kSplitTopKPartListed * int64_t{sizeof(TopKCandidate)};

}  // namespace

int64_t split_top_k_zeroed_bytes(int64_t max_rows) {
  return max_rows * kHistogramBytes + round_to_line(max_rows * int64_t{sizeof(uint32_t)});
}

int64_t split_top_k_workspace_bytes(int64_t max_rows) {
  const int64_t parts = most_parts(max_rows);
  return split_top_k_zeroed_bytes(max_rows) + parts * kListBytes +
         round_to_line(parts * int64_t{sizeof(uint32_t)});
}

cudaError_t launch_split_top_k(const TopKArgs& args, const SplitTopKWorkspace& workspace,
                               cudaStream_t stream) {
  if (args.k < 1 || args.rows > workspace.max_rows || args.scores_stride % 4 != 0 ||
      args.rows > INT32_MAX / kMaxSplitTopKParts) {
    return cudaErrorInvalidValue;
  }
  if (args.rows == 0) return cudaSuccess;
  auto* bytes = static_cast<std::byte*>(workspace.data);
  std::byte* lists = bytes + split_top_k_zeroed_bytes(workspace.max_rows);
  SplitTopKArgs split = {};
  split.top_k = args;
  split.parts = static_cast<int32_t>(parts_of(args.rows));
  split.histogram = reinterpret_cast<uint32_t*>(bytes);
  split.arrived = split.histogram + workspace.max_rows * kSplitTopKBins;
  split.candidates = reinterpret_cast<TopKCandidate*>(lists);
  split.listed = reinterpret_cast<uint32_t*>(lists + most_parts(workspace.max_rows) * kListBytes);
  const cudaError_t error = launch_top_k_histogram(split, stream);
  return error == cudaSuccess ? launch_top_k_gather(split, stream) : error;
}

}  // namespace topknot::attention
