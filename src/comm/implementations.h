// What can sum and gather over ranks, best first, with limits as data. Asked only when a model is
// spread over several.
#pragma once

#include <span>

#include "capability/rules.h"

namespace topknot::comm {

std::span<const capability::Implementation> collective_implementations();

}  // namespace topknot::comm
