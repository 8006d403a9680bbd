#include "bench/row.h"

#include <algorithm>

#include "base/assert.h"
#include "base/strings.h"

namespace topknot::bench {

double Row::floor_us(const Ceilings& c) const {
  const double read = c.read_bytes_per_second > 0 ? bytes / c.read_bytes_per_second : 0;
  const double multiply = c.mma_flops_per_second > 0 ? flops / c.mma_flops_per_second : 0;
  return std::max(read, multiply) * 1e6;
}

std::string shape_text(const Row& row) {
  std::string text;
  for (const auto& [name, value] : row.shape) text += cat(name, " ", value, ", ");
  return text + row.format;
}

double median(std::vector<double>* values) {
  TOPKNOT_ASSERT(!values->empty());
  const auto middle = values->begin() + static_cast<int64_t>(values->size() / 2);
  std::nth_element(values->begin(), middle, values->end());
  return *middle;
}

}  // namespace topknot::bench
