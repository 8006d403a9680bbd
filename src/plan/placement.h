// How tensor-parallel ranks divide a model, also unevenly: heads, rows and columns of MLPs and
// experts, and the vocabulary are cut between whole units; everything else is on every rank.
#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"
#include "model/weights.h"
#include "topknot/error.h"

namespace topknot::plan {

// Which share of layer `layer`'s MLPs a rank has. They are cut in few units, so some shares are
// larger; turning them by one rank a layer gives every rank the same in all.
inline int turned_rank(int rank, int64_t layer, int ranks) {
  return layer < 0 ? rank : static_cast<int>((rank + layer) % ranks);
}

// The part of `total` that a rank has, in whole units; the first ranks have more where it does not
// divide.
int64_t share_of(int64_t total, int64_t unit, int ranks, int rank);

// A cut through the columns of a matrix must fall between blocks, so widths are cut in units.
struct SplitUnits {
  int64_t heads = 1;
  int64_t dense_ffn = 1;
  int64_t expert_ffn = 1;
  int64_t shared_ffn = 1;
};
SplitUnits split_units(const model::ModelConfig& config, const model::CheckedTensors& tensors);

// What one rank computes with.
struct RankShare {
  int64_t heads = 0, dense_ffn = 0, expert_ffn = 0, shared_ffn = 0, vocab = 0;
};
RankShare share_of_rank(const model::ModelConfig& config, int64_t vocab, const SplitUnits& units,
                        int ranks, int rank);

// kOutOfRange when a rank would have no head.
Status check_split(const model::ModelConfig& config, const SplitUnits& units, int ranks);

// The model as a rank sees it: for sizes of its buffers.
model::ModelConfig config_of_rank(const model::ModelConfig& config, const RankShare& share);

// Part of a tensor that the rank holds, as bytes of the file's and as elements.
struct TensorShare {
  double fraction = 1;
  uint64_t bytes = 0;
  uint64_t elements = 0;
};
TensorShare share_of_tensor(const model::UsedTensor& tensor, const model::ModelConfig& config,
                            int64_t vocab, const RankShare& share);

// MLPs of a layer that has experts are the shared ones.
bool is_shared_mlp(const model::UsedTensor& tensor, const model::ModelConfig& config);

}  // namespace topknot::plan
