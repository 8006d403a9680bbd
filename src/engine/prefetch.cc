#include "engine/prefetch.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/progress.h"
#include "base/thread_pool.h"

namespace topknot::engine {
namespace {

constexpr uint64_t kPieceBytes = 8 << 20;
constexpr uint64_t kPageBytes = 4096;
constexpr double kMib = 1 << 20;

struct Piece {
  const std::byte* data;
  uint64_t bytes;
};

}  // namespace

void prefetch(std::span<const model::UsedTensor> tensors, uint64_t available_bytes, int threads,
              bool quiet) {
  uint64_t total = 0;
  std::vector<Piece> pieces;
  for (const model::UsedTensor& each : tensors) {
    const gguf::TensorInfo& tensor = *each.info;
    for (uint64_t at = 0; at < tensor.bytes; at += kPieceBytes) {
      pieces.push_back({tensor.data + at, std::min(kPieceBytes, tensor.bytes - at)});
    }
    total += tensor.bytes;
  }
  if (total > available_bytes) return;
  Progress progress("load", "MiB", static_cast<uint64_t>(static_cast<double>(total) / kMib), quiet);
  ThreadPool pool(threads);
  std::atomic<uint64_t> done{0};
  std::atomic<uint32_t> sink{0};  // keeps the reads
  pool.parallel_for(static_cast<int64_t>(pieces.size()), [&](int64_t i, int thread) {
    const Piece& piece = pieces[static_cast<size_t>(i)];
    uint32_t sum = 0;
    for (uint64_t at = 0; at < piece.bytes; at += kPageBytes)
      sum += static_cast<uint32_t>(piece.data[at]);
    sink.fetch_add(sum, std::memory_order_relaxed);
    const uint64_t now = done.fetch_add(piece.bytes) + piece.bytes;
    if (thread == 0) progress.update(static_cast<uint64_t>(static_cast<double>(now) / kMib));
  });
}

}  // namespace topknot::engine
