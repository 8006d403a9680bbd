// What can write cache rows and map positions to slots, best first, with limits as data.
#pragma once

#include <span>

#include "capability/rules.h"

namespace topknot::kvcache {

std::span<const capability::Implementation> slot_map_implementations();
// Asked with the format of the rows.
std::span<const capability::Implementation> cache_writer_implementations();

}  // namespace topknot::kvcache
