// Scalar MLA with double sums, one head and one row at a time: the oracle of every other backend.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "attention/attention.h"

namespace topknot::attention::cpu_reference {
namespace {

using namespace capability;

constexpr Rule kRules[] = {
    {Fact::kDevice, exactly(DeviceKind::kCpu), "it runs on the host", "--device cpu"},
    {Fact::kKvFormat, one_of(KvFormat::kF32, KvFormat::kBf16), "no other row format is decoded",
     "--kv-cache-dtype bf16"},
};

// Physical slots of one token, without the empty entries.
void list_slots(const MlaArgs& args, int64_t token, std::vector<int32_t>* slots) {
  slots->clear();
  if (args.selection == Selection::kSparse) {
    const int32_t* row = args.sparse.topk_slots + token * args.sparse.topk;
    std::copy_if(row, row + args.sparse.topk, std::back_inserter(*slots),
                 [](int32_t slot) { return slot >= 0; });
    return;
  }
  const int32_t* pages = args.dense.block_table + args.dense.requests[token] * args.dense.max_pages;
  for (int32_t p = 0; p < args.dense.visible[token]; ++p) {
    slots->push_back(pages[p / kvcache::kPageTokens] * kvcache::kPageTokens +
                     p % kvcache::kPageTokens);
  }
}

class ReferenceAttention final : public Attention {
 public:
  explicit ReferenceAttention(const MlaShape& shape) : shape_(shape) {
    row_.resize(static_cast<size_t>(shape.width()));
    sum_.resize(static_cast<size_t>(shape.kv_lora_rank));
  }

  Status plan(const MlaBatch&) override { return {}; }

  Status run(const MlaArgs& args) override {
    for (int64_t t = 0; t < args.tokens; ++t) {
      list_slots(args, t, &slots_);
      for (int64_t h = 0; h < shape_.heads; ++h) attend(args, t, h);
    }
    return {};
  }

 private:
  double score(const MlaArgs& args, int64_t t, int64_t h, int32_t slot) {
    kvcache::read_row(args.kv, slot, row_.data());
    const float* q = static_cast<const float*>(args.q) + (t * shape_.heads + h) * shape_.width();
    double sum = 0;
    for (size_t i = 0; i < row_.size(); ++i) {
      sum += static_cast<double>(q[i]) * static_cast<double>(row_[i]);
    }
    return sum * static_cast<double>(args.sm_scale);
  }

  void attend(const MlaArgs& args, int64_t t, int64_t h) {
    scores_.clear();
    for (const int32_t slot : slots_) scores_.push_back(score(args, t, h, slot));
    double largest = -std::numeric_limits<double>::infinity();
    for (const double value : scores_) largest = std::max(largest, value);
    std::fill(sum_.begin(), sum_.end(), 0.0);
    double total = 0;
    for (size_t j = 0; j < slots_.size(); ++j) {
      const double weight = std::exp(scores_[j] - largest);
      total += weight;
      kvcache::read_row(args.kv, slots_[j], row_.data());
      for (size_t c = 0; c < sum_.size(); ++c) sum_[c] += weight * static_cast<double>(row_[c]);
    }
    float* out = static_cast<float*>(args.out) + (t * shape_.heads + h) * shape_.kv_lora_rank;
    for (size_t c = 0; c < sum_.size(); ++c) {
      out[c] = slots_.empty() ? 0.0f : static_cast<float>(sum_[c] / total);
    }
    if (args.lse == nullptr) return;
    args.lse[t * shape_.heads + h] = slots_.empty() ? -std::numeric_limits<float>::infinity()
                                                    : static_cast<float>(largest + std::log(total));
  }

  MlaShape shape_;
  std::vector<int32_t> slots_;
  std::vector<double> scores_;
  std::vector<float> row_;
  std::vector<double> sum_;
};

Result<std::unique_ptr<Attention>> create(const MlaShape& shape, const Resources&) {
  return std::unique_ptr<Attention>(std::make_unique<ReferenceAttention>(shape));
}

int64_t workspace_bytes(const MlaShape& shape, int) {
  return shape.width() * static_cast<int64_t>(sizeof(float)) +
         shape.kv_lora_rank * static_cast<int64_t>(sizeof(double));
}

}  // namespace

const Backend& backend();

const Backend& backend() {
  static const Backend kBackend = {"cpu_reference",
                                   "scalar, double sums; any shape; the oracle of the others",
                                   kRules, create, workspace_bytes};
  return kBackend;
}

}  // namespace topknot::attention::cpu_reference
