#include "plan/price.h"

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "plan/placement.h"

namespace topknot::plan {
namespace {

using model::CheckedTensors;
using model::ModelConfig;
using model::Use;
using model::UsedTensor;

double real(int64_t n) { return static_cast<double>(n); }
double real(uint64_t n) { return static_cast<double>(n); }

struct Rates {
  std::optional<double> memory, operations, link;  // per second, of one rank
};

std::optional<double> rate(const std::optional<uint64_t>& value, int shared_by) {
  if (!value || *value == 0) return std::nullopt;
  return real(*value) / shared_by;
}

Rates rates_of(const Target& target) {
  // Ranks on one host share its memory and its cores.
  const int shared_by = target.on_host() ? target.ranks : 1;
  const auto& units = target.device.operations_per_second;
  Rates rates;
  rates.memory = rate(target.device.memory_bytes_per_second, shared_by);
  rates.operations = rate(target.on_host() ? units.fp32 : units.bf16, shared_by);
  rates.link =
      target.on_host() ? rates.memory : rate(target.links.between_devices_bytes_per_second, 1);
  return rates;
}

// One step of `tokens` tokens after `depth` keys of one sequence, on the rank that has most.
class Step {
 public:
  Step(const ModelConfig& config, const CheckedTensors& tensors, const PriceRequest& request,
       const Target& target, int64_t depth, int64_t tokens)
      : c_(config),
        tensors_(tensors),
        request_(request),
        target_(target),
        share_(share_of_rank(config, tensors.vocab, split_units(config, tensors), target.ranks, 0)),
        depth_(depth),
        tokens_(tokens) {
    const int64_t topk = request.sparse ? config.indexer->topk : 0;
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t visible = depth + t + 1;
      const bool scored = request.sparse && visible > topk;
      keys_read_ += real(scored ? topk : visible);
      if (scored) keys_scored_ += real(visible);
    }
    full_layers_ = real(request.sparse ? std::count(c_.indexer->full_layers.begin(),
                                                    c_.indexer->full_layers.end(), true)
                                       : 0);
  }

  TokenPrice price(bool decode) {
    for (const UsedTensor& each : tensors_.tensors) add_tensor(each);
    add_vectors();
    add_cache();
    add_attention(decode ? kAttentionDecode : kAttentionPrefill);
    if (request_.sparse) add_indexer();
    if (target_.ranks > 1) add_collectives();
    add(kSampling, real(tensors_.vocab) * 4, real(tensors_.vocab));
    return finish();
  }

 private:
  void add(std::string_view operation, double bytes, double operations) {
    const auto at = std::find_if(parts_.begin(), parts_.end(), [&](const OperationPrice& each) {
      return each.operation == operation;
    });
    OperationPrice& part = at != parts_.end() ? *at : parts_.emplace_back();
    part.operation = operation;
    part.bytes += bytes;
    part.operations += operations;
  }

  // Experts that some token of the step chose, as a share of all, if choices were independent.
  double experts_touched() const {
    const double chosen = real(c_.router.used) / real(c_.router.experts);
    return 1 - std::pow(1 - chosen, real(tokens_));
  }

  void add_tensor(const UsedTensor& tensor) {
    const TensorShare mine = share_of_tensor(tensor, c_, tensors_.vocab, share_);
    const double bytes = real(mine.bytes);
    const double elements = real(mine.elements);
    const std::string name = product_name(tensor.use, tensor.info->type);
    switch (tensor.use) {
      case Use::kVector: return;
      case Use::kEmbedding:
        add(name, real(tensor.info->bytes) / real(tensors_.vocab) * real(tokens_), 0);
        if (tensors_.tied_output) {
          add(product_name(Use::kLinear, tensor.info->type), bytes, 2 * elements);
        }
        return;
      case Use::kExperts: {
        const double chosen = real(c_.router.used) / real(c_.router.experts);
        add(name, bytes * experts_touched(), 2 * elements * chosen * real(tokens_));
        return;
      }
      case Use::kScoring:
        if (keys_scored_ > 0) add(name, bytes, 2 * elements * real(tokens_));
        return;
      case Use::kLinear:
      case Use::kRouter:
      case Use::kHeads:
      case Use::kFusedHeads: {
        const bool head = tensor.layer < 0;  // logits of the last token only
        add(name, bytes, 2 * elements * (head ? 1 : real(tokens_)));
        return;
      }
    }
  }

  // Values read and written once each, in fp32.
  void add_vectors() {
    const double layers = real(c_.layers);
    const double heads = real(share_.heads);
    const double normed = layers * real(2 * c_.hidden + c_.q_lora_rank + c_.latent_width()) +
                          full_layers_ * real(request_.cache.index_width) + real(c_.hidden);
    add(kNorms, 8 * normed * real(tokens_), 4 * normed * real(tokens_));
    const double rotated = layers * (heads + 1) * real(c_.rope.dim);
    add(kRope, 8 * rotated * real(tokens_), 3 * rotated * real(tokens_));
    if (c_.router.experts > 0) {
      const double scores = real(c_.layers - c_.leading_dense_layers) * real(c_.router.experts);
      add(kRouter, 4 * scores * real(tokens_), 4 * scores * real(tokens_));
    }
  }

  void add_cache() { add(kCacheWriter, real(request_.cache.bytes_per_token()) * real(tokens_), 0); }

  // Each row that is read comes from memory once a step, however many tokens select it.
  void add_attention(std::string_view name) {
    const double row = real(kvcache::row_bytes(request_.cache.format, request_.cache.latent_width,
                                               request_.cache.latent_tail));
    const double distinct = std::min(keys_read_, real(depth_ + tokens_));
    const double each_key = 2 * real(share_.heads) * real(c_.latent_width() + c_.kv_lora_rank);
    add(name, real(c_.layers) * distinct * row, real(c_.layers) * keys_read_ * each_key);
  }

  void add_indexer() {
    const model::IndexerConfig& indexer = *c_.indexer;
    const double row =
        real(kvcache::row_bytes(request_.cache.format, request_.cache.index_width, 0));
    const double distinct = std::min(keys_scored_, real(depth_ + tokens_));
    add(kIndexerScores, full_layers_ * distinct * row,
        full_layers_ * keys_scored_ * 2 * real(indexer.heads) * real(indexer.head_dim + 1));
    add(kTopK, full_layers_ * keys_scored_ * 4, full_layers_ * keys_scored_);
    const double slots = full_layers_ * std::min(keys_read_, real(indexer.topk) * real(tokens_));
    add(kSlotMap, 8 * slots, 0);
  }

  // Two sums over ranks a layer and one of embeddings, as a ring; logits are gathered.
  void add_collectives() {
    const double ring = 2.0 * (target_.ranks - 1) / target_.ranks;
    const double element = target_.on_host() ? 4 : 2;
    const double sums = real(2 * c_.layers + 1) * real(c_.hidden) * real(tokens_) * element;
    const double logits = real(tensors_.vocab - share_.vocab) * 4;
    add(kCollectives, ring * sums + logits, 0);
  }

  TokenPrice finish() {
    const Rates rates = rates_of(target_);
    TokenPrice out;
    out.depth = depth_;
    out.seconds = 0;
    for (OperationPrice& part : parts_) {
      part.bytes /= real(tokens_);
      part.operations /= real(tokens_);
      const bool links = part.operation == kCollectives;
      const auto& speed = links ? rates.link : rates.memory;
      const bool known = (speed || part.bytes == 0) && (rates.operations || part.operations == 0);
      if (known) {
        part.seconds = std::max(part.bytes > 0 ? part.bytes / *speed : 0,
                                part.operations > 0 ? part.operations / *rates.operations : 0);
      }
      if (!links) out.bytes += part.bytes;
      out.operations += part.operations;
      if (part.seconds && out.seconds) {
        *out.seconds += *part.seconds;
      } else {
        out.seconds.reset();
      }
    }
    out.parts = std::move(parts_);
    return out;
  }

  const ModelConfig& c_;
  const CheckedTensors& tensors_;
  const PriceRequest& request_;
  const Target& target_;
  RankShare share_;
  int64_t depth_;
  int64_t tokens_;
  double keys_read_ = 0;    // of all tokens of the step, in one layer
  double keys_scored_ = 0;  // likewise, in a layer with an indexer
  double full_layers_ = 0;
  std::vector<OperationPrice> parts_;
};

}  // namespace

Price estimate_price(const ModelConfig& config, const CheckedTensors& tensors,
                     const PriceRequest& request, const Target& target) {
  Price price;
  price.ubatch = request.ubatch;
  for (const int64_t depth : kPricedDepths) {
    const auto add = [&](std::vector<TokenPrice>* prices, int64_t tokens, bool decode) {
      const int64_t clipped = std::min(depth, request.context - tokens);
      if (!prices->empty() && prices->back().depth >= clipped) return;
      prices->push_back(Step(config, tensors, request, target, clipped, tokens).price(decode));
    };
    add(&price.decode, 1, true);
    add(&price.prefill, request.ubatch, false);
  }
  for (const UsedTensor& each : tensors.tensors) price.load_bytes += each.info->bytes;
  if (request.disk_bytes_per_second) {
    price.load_seconds = real(price.load_bytes) / real(*request.disk_bytes_per_second);
  } else {
    price.unknown.push_back("disk_bytes_per_second");
  }
  const Rates rates = rates_of(target);
  if (!rates.memory) price.unknown.push_back("memory_bytes_per_second");
  if (!rates.operations) {
    price.unknown.push_back(target.on_host() ? "operations_per_second.fp32"
                                             : "operations_per_second.bf16");
  }
  if (target.ranks > 1 && !rates.link) {
    price.unknown.push_back("links.between_devices_bytes_per_second");
  }
  return price;
}

}  // namespace topknot::plan
