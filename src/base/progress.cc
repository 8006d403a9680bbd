#include "base/progress.h"

#include <unistd.h>

#include <cstdio>

#include "base/strings.h"

namespace topknot {

Progress::Progress(std::string label, std::string unit, uint64_t total, bool quiet)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      total_(total),
      enabled_(!quiet && ::isatty(STDERR_FILENO) == 1),
      begin_(std::chrono::steady_clock::now()),
      last_(begin_) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
}

void Progress::update(uint64_t done) {
  using std::chrono::duration;
  if (!enabled_ || total_ == 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  drawn_ = true;
  const double seconds = duration<double>(now - begin_).count();
  const double rate = static_cast<double>(done) / seconds;
  const auto left =
      rate > 0 ? static_cast<uint64_t>(static_cast<double>(total_ - done) / rate) : uint64_t{0};
  const std::string line =
      fmt::format("\r{}  {:3.0f}% {}/{} {}  {:.0f} {}/s  {}:{:02} left\x1b[K", label_,
                  100.0 * static_cast<double>(done) / static_cast<double>(total_), done, total_,
                  unit_, rate, unit_, left / 60, left % 60);
  std::fputs(line.c_str(), stderr);
}

}  // namespace topknot
