#include "base/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/strings.h"

namespace topknot {
namespace {

using Clock = std::chrono::steady_clock;

// A message is its length and its bytes; this length alone says that `body` returned.
constexpr uint32_t kReturnedMark = UINT32_MAX;
// How long a child that has ended or closed its pipe goes unnoticed.
constexpr int kPollMilliseconds = 20;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

void write_all(int fd, const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(fd, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // the parent is gone: nobody asks any more
    at += written;
    size -= static_cast<size_t>(written);
  }
}

// Nothing of this process's own arrangements: faults must end the child, silently.
void become_expendable() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTERM, SIGINT, SIGPIPE,
                           SIGALRM, SIGTRAP, SIGSYS}) {
    ::signal(signal, SIG_DFL);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere < 0) return;
  ::dup2(nowhere, STDIN_FILENO);
  ::dup2(nowhere, STDOUT_FILENO);
}

[[noreturn]] void run_child(int pipe, const std::function<void(const SendToParent&)>& body) {
  become_expendable();
  const SendToParent send = [pipe](std::string_view text) {
    text = text.substr(0, kMaxChildMessageBytes);
    const auto size = static_cast<uint32_t>(text.size());
    write_all(pipe, &size, sizeof(size));
    write_all(pipe, text.data(), text.size());
  };
  try {
    body(send);
  } catch (...) {
    std::abort();
  }
  write_all(pipe, &kReturnedMark, sizeof(kReturnedMark));
  ::_exit(0);
}

// Whole messages at the front of `bytes` move to the outcome; true once `body` has returned.
bool take_messages(std::string* bytes, ChildOutcome* outcome) {
  uint32_t size = 0;
  while (bytes->size() >= sizeof(size)) {
    std::memcpy(&size, bytes->data(), sizeof(size));
    if (size == kReturnedMark) return true;
    if (size > kMaxChildMessageBytes || bytes->size() < sizeof(size) + size) return false;
    if (outcome->messages.size() < kMaxChildMessages) {
      outcome->messages.push_back(bytes->substr(sizeof(size), size));
    }
    bytes->erase(0, sizeof(size) + size);
  }
  return false;
}

// Reads what is there; false at the end of the pipe.
bool read_some(int pipe, std::string* bytes) {
  char buffer[4096];
  const ssize_t count = ::read(pipe, buffer, sizeof(buffer));
  if (count > 0) bytes->append(buffer, static_cast<size_t>(count));
  return count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN));
}

void set_end(int status, ChildOutcome* outcome) {
  if (WIFSIGNALED(status)) {
    outcome->end = ChildOutcome::End::kSignal;
    outcome->number = WTERMSIG(status);
  } else {
    outcome->end = ChildOutcome::End::kExited;
    outcome->number = WEXITSTATUS(status);
  }
}

int wait_for(pid_t child, int flags, int* status) {
  pid_t ended = 0;
  do {
    ended = ::waitpid(child, status, flags);
  } while (ended < 0 && errno == EINTR);
  return ended;
}

ChildOutcome listen(pid_t child, int pipe, std::chrono::milliseconds limit) {
  const Clock::time_point deadline = Clock::now() + limit;
  ChildOutcome outcome;
  std::string bytes;
  bool open = true;
  bool returned = false;
  int status = 0;
  while (!returned && Clock::now() < deadline) {
    pollfd wait{.fd = open ? pipe : -1, .events = POLLIN, .revents = 0};
    ::poll(&wait, 1, kPollMilliseconds);
    // Asked before the last read, so that nothing it sent is missed.
    const bool ended = wait_for(child, WNOHANG, &status) == child;
    while (open && ::poll(&wait, 1, 0) > 0) open = read_some(pipe, &bytes);
    returned = take_messages(&bytes, &outcome);
    if (!ended) continue;
    if (!returned) set_end(status, &outcome);
    return outcome;
  }
  ::kill(child, SIGKILL);
  wait_for(child, 0, &status);
  if (!returned) outcome.end = ChildOutcome::End::kTimedOut;
  return outcome;
}

}  // namespace

Result<ChildOutcome> run_in_child(const std::function<void(const SendToParent&)>& body,
                                  std::chrono::milliseconds limit) {
  const auto refused = [] {
    return Error{.code = Code::kResource,
                 .what = "no child process could be started",
                 .why = std::strerror(errno),
                 .fix = "raise the limits of processes and open files, or end other programs"};
  };
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return refused();
  const Descriptor reading(ends[0]);
  pid_t child = 0;
  {
    const Descriptor writing(ends[1]);
    child = ::fork();
    if (child < 0) return refused();
    if (child == 0) run_child(writing.get(), body);
  }
  return listen(child, reading.get(), limit);
}

std::string describe_end(const ChildOutcome& outcome, std::chrono::milliseconds limit) {
  switch (outcome.end) {
    case ChildOutcome::End::kReturned: return {};
    case ChildOutcome::End::kSignal:
      return cat("signal ", outcome.number, " (", ::strsignal(outcome.number), ")");
    case ChildOutcome::End::kExited: return cat("exit code ", outcome.number);
    case ChildOutcome::End::kTimedOut:
      return cat("no end within ", static_cast<double>(limit.count()) / 1000, " s");
  }
  return {};
}

}  // namespace topknot
