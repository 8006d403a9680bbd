// Exact selection of the k largest scores, deterministic, in time linear in the row whatever it
// holds.
#pragma once

#include <cstdint>
#include <span>

namespace topknot::attention {

// Writes the indices of the k largest scores in ascending order of index; equal scores: the lower
// index first. NaN counts below -inf. scores.size() <= k: all indices. Returns how many were
// written.
int64_t select_top_k(std::span<const float> scores, int64_t k, int32_t* indices);

}  // namespace topknot::attention
