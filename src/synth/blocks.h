// Random quant blocks. Every block is valid, and the decoded values have mean 0 and the wanted
// standard deviation: the quants are random bits, and the scales are set so that they fit.
//
// Each block depends only on the key and its index, so any thread may make any part of a tensor.
// Source of the layouts: gguf.md sections 4 and 5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tensor/dtype.h"

namespace topknot::synth {

// Values are drawn with this mean and standard deviation.
struct Distribution {
  float mean = 0;
  float std = 1;
};

// Floats, and every block type that weights are published in; not the types of activations (Q8_1,
// Q8_K), the integers, nor ternary and one-bit ones.
bool can_generate(tensor::DType type);

// What a tensor's blocks are drawn from.
uint64_t tensor_key(uint64_t seed, std::string_view name);

// Writes whole blocks, the first of which is `first_block` of its tensor. The mean is honoured by
// the float types only. The standard deviation is exact within 5 % where a block's scale can be: a
// type with powers of two as scales mixes two of them.
void fill_blocks(tensor::DType type, const Distribution& values, uint64_t key, uint64_t first_block,
                 std::span<std::byte> out);

}  // namespace topknot::synth
