// The indexer on host threads. Queries go in groups; a tile of keys is widened to fp32 once and
// meets every query of the group as a small matrix product; then each row is selected. A score is
// summed by one thread in an order that depends on the widths only.
#include <algorithm>
#include <memory>
#include <vector>

#include "attention/indexer/indexer.h"
#include "attention/indexer/top_k.h"
#include "base/assert.h"
#include "base/checked_math.h"

namespace topknot::attention {
namespace {

constexpr int64_t kTileKeys = 128;  // 128 keys of 128 floats are 64 KiB: second-level cache
constexpr int64_t kMaxGroup = 64;   // queries that share a widened tile
constexpr int64_t kScoreBytes = kMaxIndexerWorkspaceBytes / 2;  // of the score rows of a group

// Queries of one group: as many score rows as the bound allows.
int64_t group_of(const IndexerShape& shape) {
  const int64_t row_bytes = shape.max_context * static_cast<int64_t>(sizeof(float));
  return std::clamp<int64_t>(kScoreBytes / std::max<int64_t>(row_bytes, 1), 1,
                             std::min(kMaxGroup, shape.max_tokens));
}

class CpuIndexer final : public Indexer {
 public:
  CpuIndexer(const IndexerShape& shape, const Resources& host)
      : shape_(shape), kernels_(*host.kernels), pool_(*host.pool) {
    group_ = group_of(shape);
    score_count_ = group_ * shape.max_context;
    // Left uninitialised: only rows in use are ever touched.
    scores_ = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(score_count_));
    scratch_.resize(static_cast<size_t>(pool_.threads()));
    for (Scratch& s : scratch_) {
      s.keys.resize(static_cast<size_t>(kTileKeys * shape.head_dim));
      s.products.resize(static_cast<size_t>(kTileKeys * shape.heads));
    }
    TOPKNOT_ASSERT(workspace_bytes() <= kMaxIndexerWorkspaceBytes);
  }

  int64_t workspace_bytes() const override {
    return indexer_workspace_bytes(shape_, pool_.threads());
  }

  void run(const IndexerArgs& args) override {
    for (int64_t first = 0; first < args.tokens; first += group_) {
      run_group(args, first, std::min(group_, args.tokens - first));
    }
  }

 private:
  struct Scratch {
    std::vector<float> keys;      // [kTileKeys, head_dim]
    std::vector<float> products;  // [heads, kTileKeys]
  };

  void run_group(const IndexerArgs& args, int64_t first, int64_t count) {
    int64_t longest = 0;
    for (int64_t t = first; t < first + count; ++t) {
      if (args.visible[t] > shape_.topk) longest = std::max<int64_t>(longest, args.visible[t]);
    }
    TOPKNOT_ASSERT(longest <= shape_.max_context);
    pool_.parallel_for(ceil_div(longest, kTileKeys), [&](int64_t tile, int thread) {
      score_tile(args, first, count, tile * kTileKeys, &scratch_[static_cast<size_t>(thread)]);
    });
    pool_.parallel_for(count, [&](int64_t i, int) {
      const int64_t t = first + i;
      const int64_t visible = args.visible[t];
      int32_t* positions = args.positions + t * shape_.topk;
      if (visible <= shape_.topk) {
        select_all(visible, shape_.topk, positions);
        return;
      }
      const float* row = scores_.get() + i * shape_.max_context;
      select_top_k({row, static_cast<size_t>(visible)}, shape_.topk, positions);
      if (args.scores != nullptr) std::copy_n(row, visible, args.scores + t * args.scores_stride);
    });
  }

  // Scores of keys [begin, begin + kTileKeys) for the queries of the group that see them and need
  // them.
  void score_tile(const IndexerArgs& args, int64_t first, int64_t count, int64_t begin,
                  Scratch* s) {
    int32_t request = -1;
    int64_t gathered = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t t = first + i;
      const int64_t keys = std::min<int64_t>(args.visible[t] - begin, kTileKeys);
      if (args.visible[t] <= shape_.topk || keys <= 0) continue;
      // Queries of one request follow each other; a later one sees more of the tile.
      if (args.requests[t] != request) gathered = 0;
      request = args.requests[t];
      if (keys > gathered) gather(args, request, begin, gathered, keys, s);
      gathered = std::max(gathered, keys);
      kernels_.dot_tile(s->keys.data(), shape_.head_dim, keys,
                        args.q + t * shape_.heads * shape_.head_dim, shape_.head_dim, shape_.heads,
                        shape_.head_dim, s->products.data(), kTileKeys);
      kernels_.relu_weighted_sum(s->products.data(), kTileKeys, shape_.heads,
                                 args.weights + t * shape_.heads, keys,
                                 scores_.get() + i * shape_.max_context + begin);
    }
  }

  void gather(const IndexerArgs& args, int32_t request, int64_t begin, int64_t from, int64_t to,
              Scratch* s) const {
    constexpr int64_t kPage = kvcache::kPageTokens;
    const int32_t* pages = args.block_table + request * args.max_pages;
    for (int64_t j = from; j < to; ++j) {
      const int64_t position = begin + j;
      const std::byte* row =
          args.keys.row(int64_t{pages[position / kPage]} * kPage + position % kPage);
      float* out = s->keys.data() + j * shape_.head_dim;
      if (args.keys.format == kvcache::KvFormat::kBf16) {
        kernels_.bf16_to_f32(reinterpret_cast<const uint16_t*>(row), shape_.head_dim, out);
      } else {
        std::copy_n(reinterpret_cast<const float*>(row), shape_.head_dim, out);
      }
    }
  }

  IndexerShape shape_;
  const ops::Kernels& kernels_;
  ThreadPool& pool_;
  int64_t group_ = 1;
  int64_t score_count_ = 0;
  std::unique_ptr<float[]> scores_;  // [group, max_context]
  std::vector<Scratch> scratch_;
};

}  // namespace

int64_t indexer_workspace_bytes(const IndexerShape& shape, int threads) {
  const int64_t scores = group_of(shape) * shape.max_context;
  const int64_t per_thread = kTileKeys * (shape.head_dim + shape.heads);
  return (scores + threads * per_thread) * static_cast<int64_t>(sizeof(float));
}

std::unique_ptr<Indexer> make_cpu_indexer(const IndexerShape& shape, const Resources& host) {
  return std::make_unique<CpuIndexer>(shape, host);
}

}  // namespace topknot::attention
