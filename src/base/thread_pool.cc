#include "base/thread_pool.h"

#include <sched.h>

#include "base/assert.h"

namespace topknot {
namespace {

// About 20 us at 4 GHz: longer than the gap between two operations of a decode step, far shorter
// than a scheduler's time slice.
constexpr int kSpins = 2000;

void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

ThreadPool::ThreadPool(int threads) {
  TOPKNOT_ASSERT(threads >= 1);
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { worker_loop(i); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    stop_.store(true);
  }
  wake_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(int64_t items, Invoke call, void* body) {
  if (items <= 0) return;
  if (workers_.empty() || items == 1) {
    for (int64_t i = 0; i < items; ++i) call(body, i, 0);
    return;
  }
  call_ = call;
  body_ = body;
  items_ = items;
  next_.store(0, std::memory_order_relaxed);
  running_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  round_.fetch_add(1);  // publishes the fields above
  if (sleepers_.load() > 0) {
    const std::lock_guard lock(mutex_);
    wake_.notify_all();
  }
  work(0);
  // Every worker must have left this round before its fields may change.
  for (int spins = 0; running_.load(std::memory_order_acquire) != 0; ++spins) {
    if (spins < kSpins) {
      pause_cpu();
    } else {
      ::sched_yield();
    }
  }
}

void ThreadPool::work(int thread) {
  for (;;) {
    const int64_t item = next_.fetch_add(1, std::memory_order_relaxed);
    if (item >= items_) return;
    call_(body_, item, thread);
  }
}

bool ThreadPool::wait_for_round(uint64_t seen) {
  for (int spins = 0; spins < kSpins; ++spins) {
    if (round_.load(std::memory_order_acquire) != seen) return true;
    if (stop_.load(std::memory_order_relaxed)) return false;
    pause_cpu();
  }
  std::unique_lock lock(mutex_);
  sleepers_.fetch_add(1);
  wake_.wait(lock, [&] { return round_.load() != seen || stop_.load(); });
  sleepers_.fetch_sub(1);
  return round_.load() != seen;
}

void ThreadPool::worker_loop(int thread) {
  uint64_t seen = 0;
  while (wait_for_round(seen)) {
    seen = round_.load(std::memory_order_acquire);
    work(thread);
    running_.fetch_sub(1, std::memory_order_release);
  }
}

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  const int count = CPU_COUNT(&set);
  return count > 0 ? count : 1;
}

}  // namespace topknot
