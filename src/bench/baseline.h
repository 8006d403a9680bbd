// The same shapes through another program in the same run, so that a ratio means something on a
// shared machine.
//
// The command is started with one more argument, a JSON file [{"operation": "attention",
// "selection": "sparse", "format": "bf16", "heads": 64, "tokens": 1, ...}, ...], and prints one
// JSON array: the median microseconds of each, null for what it cannot do.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "bench/row.h"
#include "topknot/error.h"

namespace topknot::bench {

inline constexpr size_t kMaxBaselineBytes = 1 << 20;  // of what the command may print

// Fills `baseline_us`. kIo when the command cannot be run or fails, kCorrupt for what it prints.
Status add_baseline(const std::string& command, std::string_view operation, std::span<Row> rows);

}  // namespace topknot::bench
