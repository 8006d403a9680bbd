// How fast this machine's processors read memory: sums over buffers larger than the last cache,
// each touched first by the thread that owns it, so that it lies on that thread's NUMA node.
// Threads are bound to one processor each; memory is asked for in huge pages, since a peak is
// wanted.
#pragma once

#include <cstdint>
#include <vector>

#include "topknot/error.h"

namespace topknot::device {

inline constexpr int kMinBandwidthRounds = 3;
inline constexpr int kMaxBandwidthRounds = 200;
inline constexpr uint64_t kMinBandwidthBytes = 1 << 20;  // of each thread

struct ReadRequest {
  std::vector<int> readers;  // processors, a thread on each
  std::vector<int> owners;   // whose memory each of them reads, as many; empty: its own
  uint64_t bytes = 0;        // of all threads together
  double seconds = 0.5;      // rounds end after this, but not before kMinBandwidthRounds
};

struct ReadBandwidth {
  uint64_t bytes_per_second = 0;  // median of the rounds
  int threads = 0;
  uint64_t bytes = 0;  // of a round
  int rounds = 0;
};

// kInvalidArgument: no readers, or owners of another number. kResource: memory, threads or binding
// to a processor were refused.
Result<ReadBandwidth> measure_read_bandwidth(const ReadRequest& request);

// Processors this process may run on, ascending.
std::vector<int> usable_processors();

// "0-3,8": the processors of a list as the kernel writes it, at most kMaxProcessorsListed; empty
// for anything else.
std::vector<int> parse_processor_list(const std::string& text);

}  // namespace topknot::device
