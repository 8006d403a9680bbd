// Fork-join over a fixed set of threads. Work is cut into small pieces that threads take from a
// counter. A call waits for pieces, not for threads: one that is asleep or descheduled delays only
// the piece it holds. Waiting threads spin for a bounded time and then sleep.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace topknot {

class ThreadPool {
 public:
  // `threads` counts the caller: 1 means no thread is started. Where the system refuses some, the
  // pool is smaller, with a warning.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(item, thread) for every item in [0, items), each exactly once, and returns when all
  // are done; thread is in [0, threads()). Which thread takes which item is not fixed: results must
  // not depend on it. Not reentrant, called by one thread at a time; body must not throw.
  template <class Body>
  void parallel_for(int64_t items, Body&& body) {
    using Callable = std::remove_reference_t<Body>;
    run(items, &invoke<Callable>, const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  using Invoke = void (*)(void* body, int64_t item, int thread);
  template <class Callable>
  static void invoke(void* body, int64_t item, int thread) {
    (*static_cast<Callable*>(body))(item, thread);
  }

  void run(int64_t items, Invoke call, void* body);
  bool take_item(int64_t* item);
  void work(int thread);
  void worker_loop(int thread);
  bool wait_for_work();

  // What the items not yet taken belong to. The count of those items is the low half of `state_`, a
  // round number the high half: taking one by compare-and-swap proves that its round still runs,
  // and the round cannot end, nor these fields change, before that item is done.
  Invoke call_ = nullptr;
  void* body_ = nullptr;
  int64_t items_ = 0;
  std::atomic<uint64_t> state_{0};
  std::atomic<int64_t> done_{0};
  std::atomic<bool> stop_{false};
  std::atomic<int> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::thread> workers_;
};

// Cores this process may run on (affinity mask), at least 1.
int available_cores();

}  // namespace topknot
