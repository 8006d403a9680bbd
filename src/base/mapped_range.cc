#include "base/mapped_range.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "topknot/error.h"

namespace topknot {
namespace {

// A slot that is not in use has begin == end. The handler reads `text` only of the range that the
// faulting thread reads from, whose owner cannot be gone.
struct Slot {
  std::atomic<bool> taken{false};
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<const std::string*> text{nullptr};
};
static_assert(std::atomic<uintptr_t>::is_always_lock_free);

// Process-wide because a signal is; read by the handler.
std::array<Slot, kMaxMappedRanges> slots;
std::atomic<int> exit_code_of_lost_files{0};

std::string text_of(const std::string& path) {
  const Error error{.code = Code::kIo,
                    .what = "a file was lost while it was read",
                    .where = printable(path, 4096),
                    .why =
                        "a part that was there when it was opened cannot be read any more: the "
                        "file was shortened or written anew, or its disk failed",
                    .fix =
                        "compare the file with its source and start again; while the program "
                        "runs, put a new file under another name, or in its place by `mv`"};
  return cat("\nerror: ", error.to_string(), "\n");  // an answer may be in the middle of a line
}

// Only calls that POSIX allows in a signal handler.
extern "C" void on_bus_error(int number, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const bool sent = info->si_code <= 0;  // by a process: no address
  for (const Slot& each : slots) {
    if (sent || address < each.begin.load() || address >= each.end.load()) continue;
    std::string_view text = *each.text.load();
    while (!text.empty()) {
      const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
      if (written <= 0) break;
      text.remove_prefix(static_cast<size_t>(written));
    }
    ::_exit(exit_code_of_lost_files.load());
  }
  ::signal(number, SIG_DFL);  // the fault happens again, now without us
  if (sent) ::raise(number);
}

}  // namespace

MappedRange::MappedRange(const void* begin, size_t bytes, const std::string& path) {
  for (size_t i = 0; i < slots.size(); ++i) {
    Slot& slot = slots[i];
    if (slot.taken.load(std::memory_order_relaxed) || slot.taken.exchange(true)) continue;
    const auto first = reinterpret_cast<uintptr_t>(begin);
    slot.text.store(new std::string(text_of(path)));
    slot.begin.store(first);
    slot.end.store(first + bytes);
    slot_ = static_cast<int>(i);
    return;
  }
}

MappedRange::MappedRange(MappedRange&& other) noexcept : slot_(std::exchange(other.slot_, -1)) {}

MappedRange& MappedRange::operator=(MappedRange&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}

MappedRange::~MappedRange() {
  if (slot_ < 0) return;
  Slot& slot = slots[static_cast<size_t>(slot_)];
  slot.end.store(0);
  slot.begin.store(0);
  delete slot.text.exchange(nullptr);
  slot.taken.store(false);
}

void report_lost_files(int exit_code) {
  exit_code_of_lost_files.store(exit_code);
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace topknot
