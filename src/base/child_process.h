// Runs a function in a child process, so that what it does to its process (a fault, exit(), a loop
// without end) is an answer here and ends nothing else.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "topknot/error.h"

namespace topknot {

inline constexpr size_t kMaxChildMessageBytes = 64 << 10;
inline constexpr size_t kMaxChildMessages = 1024;

struct ChildOutcome {
  enum class End : uint8_t {
    kReturned,  // the function came to its end
    kSignal,    // `number` of the signal
    kExited,    // with the exit code `number`, before the function came to its end
    kTimedOut,  // and was killed
  };
  End end = End::kReturned;
  int number = 0;
  std::vector<std::string> messages;  // what it sent until then
};

// Hands a message to the parent; what is over the limits above is left out.
using SendToParent = std::function<void(std::string_view)>;

// The child has a copy of this process's memory, no standard input, and a standard output that goes
// nowhere; exceptions that leave `body` end it by SIGABRT. kResource when the system refuses a
// process. Of this process only the calling thread exists in the child: `body` must not need what
// another thread may hold, so call this before starting threads.
Result<ChildOutcome> run_in_child(const std::function<void(const SendToParent&)>& body,
                                  std::chrono::milliseconds limit);

// "signal 11 (Segmentation fault)", "exit code 3", "no end within 20 s"; empty for kReturned.
std::string describe_end(const ChildOutcome& outcome, std::chrono::milliseconds limit);

}  // namespace topknot
