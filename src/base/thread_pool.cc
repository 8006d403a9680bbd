#include "base/thread_pool.h"

#include <sched.h>

#include <system_error>

#include "base/assert.h"
#include "base/log.h"

namespace topknot {
namespace {

// About 20 us at 4 GHz: longer than the gap between two operations of a decode step, far shorter
// than a scheduler's time slice.
constexpr int kSpins = 2000;
constexpr int64_t kMaxItems = (int64_t{1} << 32) - 1;

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
  for (int i = 1; i < threads; ++i) {
    // A limit on processes or address space may refuse one: those that started do the work.
    try {
      workers_.emplace_back([this, i] { worker_loop(i); });
    } catch (const std::system_error& error) {
      log_warning("only ", i, " of ", threads, " threads could be started: ", error.what());
      break;
    }
  }
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
  TOPKNOT_ASSERT(items <= kMaxItems);
  call_ = call;
  body_ = body;
  items_ = items;
  done_.store(0, std::memory_order_relaxed);
  const uint64_t round = (state_.load(std::memory_order_relaxed) >> 32) + 1;
  state_.store(round << 32 | static_cast<uint64_t>(items));  // publishes the fields above
  if (sleepers_.load() > 0) {
    const std::lock_guard lock(mutex_);
    wake_.notify_all();
  }
  work(0);
  for (int spins = 0; done_.load(std::memory_order_acquire) != items; ++spins) {
    if (spins < kSpins) {
      pause_cpu();
    } else {
      ::sched_yield();
    }
  }
}

bool ThreadPool::take_item(int64_t* item) {
  uint64_t seen = state_.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(seen) != 0) {
    if (state_.compare_exchange_weak(seen, seen - 1, std::memory_order_acq_rel)) {
      *item = items_ - static_cast<int64_t>(static_cast<uint32_t>(seen));
      return true;
    }
  }
  return false;
}

void ThreadPool::work(int thread) {
  int64_t item = 0;
  while (take_item(&item)) {
    call_(body_, item, thread);
    done_.fetch_add(1, std::memory_order_release);
  }
}

bool ThreadPool::wait_for_work() {
  const auto ready = [this] { return static_cast<uint32_t>(state_.load()) != 0; };
  for (int spins = 0; spins < kSpins; ++spins) {
    if (ready()) return true;
    if (stop_.load(std::memory_order_relaxed)) return false;
    pause_cpu();
  }
  std::unique_lock lock(mutex_);
  // Before the test of `ready`: run() publishes work first and looks for sleepers then.
  sleepers_.fetch_add(1);
  wake_.wait(lock, [&] { return ready() || stop_.load(); });
  sleepers_.fetch_sub(1);
  return !stop_.load();
}

void ThreadPool::worker_loop(int thread) {
  while (wait_for_work()) work(thread);
}

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  const int count = CPU_COUNT(&set);
  return count > 0 ? count : 1;
}

}  // namespace topknot
