// Scalar fp32 operations with double sums: read them beside the paper. Never optimised; the oracle
// of every other implementation.
#pragma once

#include <memory>

#include "ops/ops.h"

namespace topknot::ops {

std::unique_ptr<Ops> make_reference_ops();

}  // namespace topknot::ops
