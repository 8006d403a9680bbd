#include "plan/placement.h"

#include <algorithm>
#include <numeric>

#include "base/checked_math.h"
#include "base/strings.h"

namespace topknot::plan {
namespace {

using model::ModelConfig;
using model::Split;
using model::Use;
using model::UsedTensor;

int64_t block_of(const UsedTensor& tensor) {
  return tensor::dtype_info(tensor.info->type).block_elements;
}

uint64_t part(uint64_t all, int64_t mine, int64_t total) {
  if (total <= 0) return 0;
  return static_cast<uint64_t>(static_cast<unsigned __int128>(all) * static_cast<uint64_t>(mine) /
                               static_cast<uint64_t>(total));
}

}  // namespace

int64_t share_of(int64_t total, int64_t unit, int ranks, int rank) {
  const int64_t units = ceil_div(total, unit);
  const int64_t each = units / ranks;
  const int64_t more = units % ranks;
  const auto begin_of = [&](int64_t r) {
    return std::min(total, (each * r + std::min<int64_t>(r, more)) * unit);
  };
  return begin_of(rank + 1) - begin_of(rank);
}

bool is_shared_mlp(const UsedTensor& tensor, const ModelConfig& config) {
  return tensor.layer >= 0 && tensor.use == Use::kLinear && config.is_moe_layer(tensor.layer);
}

SplitUnits split_units(const ModelConfig& config, const model::CheckedTensors& tensors) {
  SplitUnits units;
  for (const UsedTensor& each : tensors.tensors) {
    const int64_t block = block_of(each);
    if (each.split == Split::kHeadColumns) {
      units.heads = std::lcm(units.heads, block / std::gcd(block, config.v_head_dim));
    }
    if (each.split != Split::kFfnColumns) continue;
    int64_t& unit = each.use == Use::kExperts     ? units.expert_ffn
                    : is_shared_mlp(each, config) ? units.shared_ffn
                                                  : units.dense_ffn;
    unit = std::max(unit, block);  // blocks are powers of two times 32
  }
  return units;
}

RankShare share_of_rank(const ModelConfig& config, int64_t vocab, const SplitUnits& units,
                        int ranks, int rank) {
  RankShare share;
  share.heads = share_of(config.heads, units.heads, ranks, rank);
  share.dense_ffn = share_of(config.dense_ffn, units.dense_ffn, ranks, rank);
  share.expert_ffn = share_of(config.expert_ffn, units.expert_ffn, ranks, rank);
  share.shared_ffn =
      share_of(config.expert_ffn * config.shared_experts, units.shared_ffn, ranks, rank);
  share.vocab = share_of(vocab, 1, ranks, rank);
  return share;
}

Status check_split(const ModelConfig& config, const SplitUnits& units, int ranks) {
  const int64_t most = ceil_div(config.heads, units.heads);
  if (ranks <= most) return {};
  return Error{.code = Code::kOutOfRange,
               .what = cat("the model cannot be split over ", ranks, " ranks"),
               .why = cat("needed: heads for each rank, in units of ", units.heads,
                          " (cuts fall between quant blocks); found: ", config.heads, " heads, ",
                          most, " units"),
               .fix = cat("--tensor-parallel-size 1 to ", most)};
}

ModelConfig config_of_rank(const ModelConfig& config, const RankShare& share) {
  ModelConfig rank = config;
  rank.heads = share.heads;
  rank.dense_ffn = std::max(
      share.dense_ffn, config.leading_dense_layers < config.layers ? share.shared_ffn : int64_t{0});
  rank.expert_ffn = share.expert_ffn;
  return rank;
}

TensorShare share_of_tensor(const UsedTensor& tensor, const ModelConfig& config, int64_t vocab,
                            const RankShare& share) {
  const uint64_t bytes = tensor.info->bytes;
  const uint64_t elements = tensor.info->elements();
  int64_t mine = 1;
  int64_t total = 1;
  switch (tensor.split) {
    case Split::kWhole: break;
    case Split::kVocabRows: mine = share.vocab, total = vocab; break;
    case Split::kHeadRows:
    case Split::kHeadColumns:
    case Split::kHeads: mine = share.heads, total = config.heads; break;
    case Split::kFfnRows:
    case Split::kFfnColumns:
      if (tensor.use == Use::kExperts) {
        mine = share.expert_ffn, total = config.expert_ffn;
      } else if (is_shared_mlp(tensor, config)) {
        mine = share.shared_ffn, total = config.expert_ffn * config.shared_experts;
      } else {
        mine = share.dense_ffn, total = config.dense_ffn;
      }
      break;
  }
  TensorShare out;
  out.fraction = total > 0 ? static_cast<double>(mine) / static_cast<double>(total) : 0;
  out.bytes = part(bytes, mine, total);
  out.elements = part(elements, mine, total);
  return out;
}

}  // namespace topknot::plan
