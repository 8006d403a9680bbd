// One result of a benchmark, and what to say about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace topknot::bench {

// What the machine reaches, measured in the same run; 0 where it was not measured.
struct Ceilings {
  std::string device;                // its name
  double read_bytes_per_second = 0;  // plain reads of memory far larger than the caches
  double mma_flops_per_second = 0;   // mma.sync bf16 with fp32 sums, operands in registers
};

struct Row {
  std::string name;  // "portable"
  // What was computed, in the order shown: {"heads", 64}, {"tokens", 1} ...
  std::vector<std::pair<std::string, int64_t>> shape;
  std::string format;  // of the cached rows
  double us = 0;       // median
  double bytes = 0;    // the fewest that must be read and written
  double flops = 0;
  double error = 0;        // ||out - reference|| / ||reference||
  double error_limit = 0;  // a row above it is no result
  std::optional<double> baseline_us;

  bool right() const { return error <= error_limit; }
  double bytes_per_second() const { return bytes / us * 1e6; }
  double flops_per_second() const { return flops / us * 1e6; }
  // The larger of bytes over the read ceiling and operations over the matrix ceiling.
  double floor_us(const Ceilings& c) const;
};

// "heads 64, tokens 1, topk 2048, bf16".
std::string shape_text(const Row& row);

// The median; `values` is reordered. Not of an empty list.
double median(std::vector<double>* values);

}  // namespace topknot::bench
