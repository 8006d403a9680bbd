// The verdicts about GPUs; a part of judge().
#pragma once

#include <string>
#include <vector>

#include "doctor/judge.h"

namespace topknot::doctor {

void add_gpus(const Findings& found, std::vector<Check>* checks);

std::string rate_text(uint64_t bytes_per_second);  // "28.4 GB/s", of 10^9 bytes

}  // namespace topknot::doctor
