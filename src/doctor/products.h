// How fast the inner loops of src/ops run on this processor, apart from memory.
#pragma once

#include <vector>

#include "doctor/findings.h"
#include "ops/cpu/kernels.h"

namespace topknot::doctor {

// About 2 x `seconds`: one thread, then `threads`.
ProductRates measure_products(const ops::Kernels& kernels, int threads, double seconds);

// The types that published files are made of; about `seconds` each.
std::vector<DecodeRate> measure_decoding(const ops::Kernels& kernels, double seconds);

// Every set that was built, best first, with the instruction sets that this processor lacks.
std::vector<KernelSet> find_kernel_sets();

}  // namespace topknot::doctor
