// Scalar indexer with double sums and a stable sort: the oracle.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "attention/indexer/indexer.h"

namespace topknot::attention {
namespace {

class ReferenceIndexer final : public Indexer {
 public:
  explicit ReferenceIndexer(const IndexerShape& shape) : shape_(shape) {
    key_.resize(static_cast<size_t>(shape.head_dim));
  }

  int64_t workspace_bytes() const override {
    return static_cast<int64_t>(scores_.capacity() * sizeof(float) +
                                order_.capacity() * sizeof(int32_t));
  }

  void run(const IndexerArgs& args) override {
    for (int64_t t = 0; t < args.tokens; ++t) {
      const int64_t visible = args.visible[t];
      int32_t* positions = args.positions + t * shape_.topk;
      if (visible <= shape_.topk) {
        select_all(visible, shape_.topk, positions);
        continue;
      }
      scores_.resize(static_cast<size_t>(visible));
      for (int64_t j = 0; j < visible; ++j) scores_[static_cast<size_t>(j)] = score(args, t, j);
      if (args.scores != nullptr) {
        std::copy(scores_.begin(), scores_.end(), args.scores + t * args.scores_stride);
      }
      order_.resize(scores_.size());
      std::iota(order_.begin(), order_.end(), 0);
      std::stable_sort(order_.begin(), order_.end(), [&](int32_t a, int32_t b) {
        const float x = scores_[static_cast<size_t>(a)];
        const float y = scores_[static_cast<size_t>(b)];
        return x > y || (std::isnan(y) && !std::isnan(x));
      });
      std::sort(order_.begin(), order_.begin() + shape_.topk);
      std::copy_n(order_.begin(), shape_.topk, positions);
    }
  }

 private:
  float score(const IndexerArgs& args, int64_t t, int64_t j) {
    constexpr int64_t kPage = kvcache::kPageTokens;
    const int32_t* pages = args.block_table + args.requests[t] * args.max_pages;
    kvcache::read_row(args.keys, pages[j / kPage] * kPage + j % kPage, key_.data());
    double sum = 0;
    for (int64_t h = 0; h < shape_.heads; ++h) {
      const float* q = args.q + (t * shape_.heads + h) * shape_.head_dim;
      double dot = 0;
      for (size_t i = 0; i < key_.size(); ++i) {
        dot += static_cast<double>(q[i]) * static_cast<double>(key_[i]);
      }
      sum += static_cast<double>(args.weights[t * shape_.heads + h]) * std::max(dot, 0.0);
    }
    return static_cast<float>(sum);
  }

  IndexerShape shape_;
  std::vector<float> key_;
  std::vector<float> scores_;
  std::vector<int32_t> order_;
};

}  // namespace

std::unique_ptr<Indexer> make_reference_indexer(const IndexerShape& shape) {
  return std::make_unique<ReferenceIndexer>(shape);
}

}  // namespace topknot::attention
