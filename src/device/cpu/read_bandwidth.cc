#include "device/cpu/read_bandwidth.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "base/strings.h"
#include "device/cpu/host_facts.h"
#include "device/cpu/small_file.h"

namespace topknot::device {
namespace {

using Clock = std::chrono::steady_clock;
// Two sums of 64 bytes: enough loads under way for any core, and they stay in registers.
using Lanes = uint64_t __attribute__((vector_size(64), may_alias));
constexpr size_t kStride = 2 * sizeof(Lanes);
constexpr size_t kMaxMask = 1 << 16;  // processors that a binding may name

uint64_t sum_of(const std::byte* data, size_t bytes) {
  const auto* at = reinterpret_cast<const Lanes*>(data);
  const auto* end = reinterpret_cast<const Lanes*>(data + bytes / kStride * kStride);
  Lanes first{};
  Lanes second{};
  for (; at != end; at += 2) {
    first += at[0];
    second += at[1];
  }
  first += second;
  uint64_t sum = 0;
  for (size_t i = 0; i < sizeof(Lanes) / sizeof(uint64_t); ++i) sum += first[i];
  return sum;
}

// Anonymous memory, unmapped with the object.
class Buffer {
 public:
  explicit Buffer(size_t bytes) : bytes_(bytes) {
    void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return;
    data_ = static_cast<std::byte*>(data);
    ::madvise(data, bytes, MADV_HUGEPAGE);  // advice; refused where there are none
  }
  ~Buffer() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_;
};

// The set of one processor, of the size that machines with more than 1024 need.
bool bind_to(int processor) {
  if (processor < 0 || static_cast<size_t>(processor) >= kMaxMask) return false;
  const auto wanted = static_cast<size_t>(processor) + 1;
  cpu_set_t* set = CPU_ALLOC(wanted);
  if (set == nullptr) return false;
  const size_t bytes = CPU_ALLOC_SIZE(wanted);
  CPU_ZERO_S(bytes, set);
  CPU_SET_S(static_cast<size_t>(processor), bytes, set);
  const bool bound = ::pthread_setaffinity_np(::pthread_self(), bytes, set) == 0;
  CPU_FREE(set);
  return bound;
}

struct Reader {
  int processor = 0;
  int owner = 0;
  Clock::time_point begin, end;  // of the last round
};

class Measurement {
 public:
  Measurement(const ReadRequest& request)
      : slice_(std::max(request.bytes / request.readers.size(), kMinBandwidthBytes)),
        barrier_(static_cast<ptrdiff_t>(request.readers.size()) + 1) {
    readers_.resize(request.readers.size());
    for (size_t i = 0; i < readers_.size(); ++i) {
      readers_[i].processor = request.readers[i];
      readers_[i].owner = request.owners.empty() ? request.readers[i] : request.owners[i];
    }
  }

  // False when a thread could not be started, bound or given memory.
  bool run(double seconds) {
    std::vector<std::thread> threads;
    for (Reader& each : readers_) {
      try {  // the library's way to report a refusal
        threads.emplace_back([this, &each] { read(&each); });
      } catch (const std::system_error&) {
        failed_ = true;
        barrier_.arrive_and_drop();
      }
    }
    barrier_.arrive_and_wait();  // every buffer is filled
    const auto begin = Clock::now();
    while (!failed_ && more(begin, seconds)) {
      barrier_.arrive_and_wait();  // a round begins
      barrier_.arrive_and_wait();  // and has ended
      rates_.push_back(rate());
    }
    stop_ = true;
    barrier_.arrive_and_wait();
    for (std::thread& each : threads) each.join();
    return !failed_;
  }

  ReadBandwidth result() {
    std::sort(rates_.begin(), rates_.end());
    return {.bytes_per_second = static_cast<uint64_t>(rates_[rates_.size() / 2]),
            .threads = static_cast<int>(readers_.size()),
            .bytes = slice_ * readers_.size(),
            .rounds = static_cast<int>(rates_.size())};
  }

 private:
  bool more(Clock::time_point begin, double seconds) const {
    if (rates_.size() < kMinBandwidthRounds) return true;
    const std::chrono::duration<double> spent = Clock::now() - begin;
    return spent.count() < seconds && rates_.size() < kMaxBandwidthRounds;
  }

  // From the first reader's start to the last one's end.
  double rate() const {
    Clock::time_point begin = readers_.front().begin;
    Clock::time_point end = readers_.front().end;
    for (const Reader& each : readers_) {
      begin = std::min(begin, each.begin);
      end = std::max(end, each.end);
    }
    const double bytes = static_cast<double>(slice_) * static_cast<double>(readers_.size());
    return bytes / std::max(std::chrono::duration<double>(end - begin).count(), 1e-9);
  }

  void read(Reader* self) {
    const Buffer buffer(slice_);
    const bool ready = buffer.data() != nullptr && bind_to(self->owner);
    if (ready) std::memset(buffer.data(), 1, slice_);
    if (!ready || !bind_to(self->processor)) failed_ = true;
    barrier_.arrive_and_wait();
    while (true) {
      barrier_.arrive_and_wait();
      if (stop_) return;
      self->begin = Clock::now();
      if (!failed_) sink_.fetch_add(sum_of(buffer.data(), slice_), std::memory_order_relaxed);
      self->end = Clock::now();
      barrier_.arrive_and_wait();
    }
  }

  uint64_t slice_;
  std::vector<Reader> readers_;
  std::barrier<> barrier_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> sink_{0};  // keeps the reads
  std::vector<double> rates_;
};

}  // namespace

Result<ReadBandwidth> measure_read_bandwidth(const ReadRequest& request) {
  if (request.readers.empty() ||
      (!request.owners.empty() && request.owners.size() != request.readers.size())) {
    return Error{.code = Code::kInvalidArgument,
                 .what = "memory bandwidth cannot be measured",
                 .why = cat(request.readers.size(), " readers, ", request.owners.size(), " owners"),
                 .fix = "name a processor for each thread, and as many owners or none"};
  }
  Measurement measurement(request);
  if (measurement.run(request.seconds)) return measurement.result();
  return Error{
      .code = Code::kResource,
      .what = "memory bandwidth cannot be measured",
      .why = cat("the system refused one of ", request.readers.size(), " threads, its memory of ",
                 human_bytes(request.bytes), " in all, or its binding to a processor"),
      .fix = "check `ulimit -u`, `ulimit -v` and free memory"};
}

std::vector<int> usable_processors() {
  std::vector<int> out;
  cpu_set_t* set = CPU_ALLOC(kMaxMask);
  if (set == nullptr) return {0};
  const size_t bytes = CPU_ALLOC_SIZE(kMaxMask);
  CPU_ZERO_S(bytes, set);
  if (::sched_getaffinity(0, bytes, set) == 0) {
    for (size_t i = 0; i < kMaxMask; ++i) {
      if (CPU_ISSET_S(i, bytes, set)) out.push_back(static_cast<int>(i));
    }
  }
  CPU_FREE(set);
  if (out.empty()) out.push_back(0);
  return out;
}

std::vector<int> parse_processor_list(const std::string& text) {
  std::vector<int> out;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view range = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(range.size() + 1, rest.size()));
    const size_t dash = range.find('-');
    const auto first = parse_number(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_number(range.substr(dash + 1));
    if (!first || !last || *last < *first || *last >= kMaxMask) return {};
    for (uint64_t i = *first; i <= *last && out.size() < kMaxProcessorsListed; ++i) {
      out.push_back(static_cast<int>(i));
    }
  }
  return out;
}

}  // namespace topknot::device
