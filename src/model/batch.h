// One step of the model as plain data: what the scheduler forms and the forward pass reads.
#pragma once

#include <cstdint>
#include <span>

namespace topknot::model {

// T tokens of one or more requests; tokens of one request follow each other in order of position.
struct Batch {
  std::span<const int32_t> ids;           // [T]
  std::span<const int32_t> positions;     // [T]: a token sees keys 0 .. position of its request
  std::span<const int32_t> requests;      // [T]: row of the block table
  std::span<const int32_t> slot_mapping;  // [T]: where each new cache row is written
  std::span<const int32_t> block_table;   // [requests, max_pages]
  int64_t max_pages = 0;
  std::span<const int32_t> output_rows;  // tokens whose final hidden state is wanted
};

struct StepStats {
  int64_t queries = 0;
  int64_t sparse_queries = 0;  // those that saw more keys than they attended
};

}  // namespace topknot::model
