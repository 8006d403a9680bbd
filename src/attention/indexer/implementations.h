// What can score keys and select the best of them, best first, with limits as data. Host names are
// those of ops/implementations.h: an indexer runs on the same inner loops.
#pragma once

#include <span>

#include "capability/rules.h"

namespace topknot::attention {

// Asked with the workspace that indexer_workspace_bytes() gives.
std::span<const capability::Implementation> indexer_implementations();
std::span<const capability::Implementation> top_k_implementations();

}  // namespace topknot::attention
