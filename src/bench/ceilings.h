// What a GPU reaches without any work around it: the denominators of every share.
#pragma once

#include "bench/row.h"
#include "topknot/error.h"

namespace topknot::bench {

// Takes a few GiB of device memory and some tenths of a second.
Result<Ceilings> measure_ceilings(int cuda_device);

}  // namespace topknot::bench
