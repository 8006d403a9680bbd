// What can compute the operations of ops.h, on every kind of device: ordered lists, best first,
// with the limits of each as data. The names of host implementations are those of the sets of inner
// loops (kernels.h) and "reference".
#pragma once

#include <span>

#include "capability/rules.h"

namespace topknot::ops {

// Norms, rotation, activation, sums: everything without weights in blocks.
std::span<const capability::Implementation> vector_implementations();
// Products with weights in their file's blocks: embedding rows, linear layers, per-head products,
// experts. Each type of weight is asked for by itself.
std::span<const capability::Implementation> product_implementations();
std::span<const capability::Implementation> router_implementations();
// From logits to a token; the code is engine/sampler.cc, above every layer that plans.
std::span<const capability::Implementation> sampling_implementations();

}  // namespace topknot::ops
