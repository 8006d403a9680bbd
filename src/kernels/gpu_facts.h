// What rules ask of a GPU, and the names that C has for rows.
#pragma once

#include "capability/facts.h"
#include "topknot/error.h"
#include "topknot/kernels.h"

namespace topknot::kernels {

// kNotFound, with the machine's own reason, when there is no such GPU.
Result<capability::Facts> gpu_facts(int device, const char* function);

Result<capability::KvFormat> row_format(topknot_row_format format, const char* function);

}  // namespace topknot::kernels
