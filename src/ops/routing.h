// Expert routing of one token in fp32: small enough that every implementation on the host shares
// it.
#pragma once

#include <cstdint>
#include <span>

#include "ops/ops.h"

namespace topknot::ops {

// logits [experts] are overwritten with scores; bias [experts] or empty; ids and weights [used],
// best first. NaN scores count as -inf, so a choice is always made. scratch: 2 * experts floats.
void route_token(const RouterSpec& spec, std::span<float> logits, std::span<const float> bias,
                 std::span<float> scratch, int32_t* ids, float* weights);

}  // namespace topknot::ops
