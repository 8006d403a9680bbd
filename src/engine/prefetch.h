// Brings a model's pages into memory before the first step, so that the first answer is not slow.
#pragma once

#include <cstdint>
#include <span>

#include "model/weights.h"

namespace topknot::engine {

// Reads every page of the tensors once, in parallel, with a progress line; does nothing when the
// model is larger than `available_bytes`, for then pages would only push each other out.
void prefetch(std::span<const model::UsedTensor> tensors, uint64_t available_bytes, int threads,
              bool quiet);

}  // namespace topknot::engine
