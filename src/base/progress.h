// A progress line with rate and time left, on a terminal only. Redrawn at most ten times a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace topknot {

class Progress {
 public:
  // label "prefill", unit "tokens": "prefill  42% 1720/4096 tokens  812 tokens/s  0:03 left".
  // Silent when standard error is not a terminal or `quiet`.
  Progress(std::string label, std::string unit, uint64_t total, bool quiet = false);
  ~Progress();  // erases the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(uint64_t done);

 private:
  std::string label_;
  std::string unit_;
  uint64_t total_;
  bool enabled_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace topknot
