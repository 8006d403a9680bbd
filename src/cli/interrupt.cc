#include "cli/interrupt.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

namespace topknot::cli {
namespace {

// Process-wide because a signal is; written by the handler.
std::atomic<bool> pressed{false};
std::atomic<int> presses{0};
int pipe_ends[2] = {-1, -1};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

constexpr int kPressesThatKill = 3;

extern "C" void on_interrupt(int) {
  const int saved = errno;
  pressed.store(true);
  if (presses.fetch_add(1) + 1 >= kPressesThatKill) {
    ::signal(SIGINT, SIG_DFL);
    ::raise(SIGINT);
  }
  // A full pipe is readable already, so what cannot be written is not missed.
  [[maybe_unused]] const ssize_t written = ::write(pipe_ends[1], "", 1);
  errno = saved;
}

}  // namespace

void Interrupt::install() {
  if (::pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) != 0) pipe_ends[0] = pipe_ends[1] = -1;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // waits end through the descriptor, not through EINTR
  ::sigaction(SIGINT, &action, nullptr);
}

const std::atomic<bool>& Interrupt::flag() { return pressed; }

bool Interrupt::consume() {
  char drained[64];
  while (pipe_ends[0] >= 0 && ::read(pipe_ends[0], drained, sizeof(drained)) > 0) {
  }
  presses.store(0);
  return pressed.exchange(false);
}

int Interrupt::descriptor() { return pipe_ends[0]; }

}  // namespace topknot::cli
