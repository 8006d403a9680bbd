// Fills in the findings: facts first, then what takes time, each step announced.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>

#include "doctor/findings.h"

namespace topknot::doctor {

struct ExamineOptions {
  bool quick = false;                              // shorter measurements: a few seconds in all
  std::string file;                                // its disk's rate is measured; empty: none
  const std::atomic<bool>* cancel = nullptr;       // looked at between steps; may be null
  std::function<void(std::string_view)> announce;  // "measuring memory bandwidth"; may be empty
};

// An Error only where `file` cannot be read, or the user cancelled: whatever the machine cannot do
// is in the findings.
Result<Findings> examine(const ExamineOptions& options);

// Bytes to read for a rate of memory: several times the caches, a part of what is free.
uint64_t bandwidth_bytes(uint64_t cache_bytes, uint64_t available_bytes);

// `count` of the processors, evenly spread.
std::vector<int> spread_over(const std::vector<int>& processors, int count);

}  // namespace topknot::doctor
