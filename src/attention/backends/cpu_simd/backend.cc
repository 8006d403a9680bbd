// MLA on host threads. Only selected rows are touched: tiles of them are gathered and widened to
// fp32 once for a group of heads, then scored and accumulated as small matrix products with an
// online softmax.
//
// A token's rows are taken in the order given, in tiles counted from the first, and each (token,
// head) is summed by one thread: the result does not depend on the batch or on threads. Dense
// attention walks the same code over all positions, so with top-k >= length sparse and dense are
// bit-identical.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "attention/attention.h"
#include "base/checked_math.h"

namespace topknot::attention::cpu_simd {
namespace {

using namespace capability;

constexpr Rule kRules[] = {
    {Fact::kDevice, exactly(DeviceKind::kCpu), "it runs on the host", "--device cpu"},
    {Fact::kKvFormat, one_of(KvFormat::kF32, KvFormat::kBf16), "no other row format is widened",
     "--kv-cache-dtype bf16"},
};

constexpr int64_t kTileRows =
    32;  // 32 rows of 576 floats are 72 KiB: they stay in the second-level cache
constexpr int64_t kGroupHeads =
    16;  // heads that share a gathered tile; a piece of work for a thread

// Walks the slots of one token in order, empty entries left out.
class SlotWalk {
 public:
  SlotWalk(const MlaArgs& args, int64_t token) {
    if (args.selection == Selection::kSparse) {
      slots_ = args.sparse.topk_slots + token * args.sparse.topk;
      end_ = args.sparse.topk;
    } else {
      pages_ = args.dense.block_table + args.dense.requests[token] * args.dense.max_pages;
      end_ = args.dense.visible[token];
    }
  }

  // Up to kTileRows slots; 0 at the end.
  int64_t next(int32_t* tile) {
    int64_t count = 0;
    for (; at_ < end_ && count < kTileRows; ++at_) {
      const int32_t slot = slots_ != nullptr ? slots_[at_] : dense_slot(at_);
      if (slot >= 0) tile[count++] = slot;
    }
    return count;
  }

 private:
  int32_t dense_slot(int64_t position) const {
    constexpr int64_t kPage = kvcache::kPageTokens;
    return pages_[position / kPage] * kvcache::kPageTokens + static_cast<int32_t>(position % kPage);
  }

  const int32_t* slots_ = nullptr;
  const int32_t* pages_ = nullptr;
  int64_t at_ = 0;
  int64_t end_ = 0;
};

class SimdAttention final : public Attention {
 public:
  SimdAttention(const MlaShape& shape, const Resources& host)
      : shape_(shape), kernels_(*host.kernels), pool_(*host.pool) {
    scratch_.resize(static_cast<size_t>(pool_.threads()));
    for (Scratch& s : scratch_) s.tile.resize(static_cast<size_t>(kTileRows * shape.width()));
  }

  static int64_t bytes_per_thread(const MlaShape& shape) {
    return static_cast<int64_t>(sizeof(Scratch)) +
           kTileRows * shape.width() * static_cast<int64_t>(sizeof(float));
  }

  Status plan(const MlaBatch&) override { return {}; }

  Status run(const MlaArgs& args) override {
    const int64_t groups = ceil_div(shape_.heads, kGroupHeads);
    pool_.parallel_for(args.tokens * groups, [&](int64_t item, int thread) {
      attend(args, item / groups, item % groups * kGroupHeads,
             &scratch_[static_cast<size_t>(thread)]);
    });
    return {};
  }

 private:
  struct Scratch {
    std::vector<float> tile;  // [kTileRows, D]
    float p[kGroupHeads * kTileRows];
    float largest[kGroupHeads];
    float total[kGroupHeads];
    int32_t slots[kTileRows];
  };

  void gather(const kvcache::CacheRows& kv, int64_t count, Scratch* s) const {
    for (int64_t i = 0; i < count; ++i) {
      float* out = s->tile.data() + i * shape_.width();
      const std::byte* row = kv.row(s->slots[i]);
      if (kv.format == KvFormat::kBf16) {
        kernels_.bf16_to_f32(reinterpret_cast<const uint16_t*>(row), shape_.width(), out);
      } else {
        std::copy_n(reinterpret_cast<const float*>(row), shape_.width(), out);
      }
    }
  }

  // Scores of a tile become weights against the running maximum; sums so far are rescaled when it
  // grows.
  void softmax_step(float sm_scale, int64_t heads, int64_t count, float* out, Scratch* s) const {
    for (int64_t h = 0; h < heads; ++h) {
      float* p = s->p + h * kTileRows;
      float largest = s->largest[h];
      for (int64_t j = 0; j < count; ++j) {
        p[j] *= sm_scale;
        largest = std::max(largest, p[j]);
      }
      if (largest > s->largest[h]) {
        const float shrink = std::exp(s->largest[h] - largest);  // 0 for the first tile
        s->total[h] *= shrink;
        float* sum = out + h * shape_.kv_lora_rank;
        for (int64_t c = 0; c < shape_.kv_lora_rank; ++c) sum[c] *= shrink;
        s->largest[h] = largest;
      }
      for (int64_t j = 0; j < count; ++j) {
        p[j] = std::exp(p[j] - largest);
        s->total[h] += p[j];
      }
    }
  }

  void attend(const MlaArgs& args, int64_t token, int64_t first_head, Scratch* s) const {
    const int64_t heads = std::min(kGroupHeads, shape_.heads - first_head);
    const int64_t rank = shape_.kv_lora_rank;
    const int64_t width = shape_.width();
    const float* q =
        static_cast<const float*>(args.q) + (token * shape_.heads + first_head) * width;
    float* out = static_cast<float*>(args.out) + (token * shape_.heads + first_head) * rank;
    std::fill_n(out, heads * rank, 0.0f);
    std::fill_n(s->largest, heads, -std::numeric_limits<float>::infinity());
    std::fill_n(s->total, heads, 0.0f);
    SlotWalk walk(args, token);
    while (const int64_t count = walk.next(s->slots)) {
      gather(args.kv, count, s);
      kernels_.dot_tile(s->tile.data(), width, count, q, width, heads, width, s->p, kTileRows);
      softmax_step(args.sm_scale, heads, count, out, s);
      kernels_.accumulate(s->p, kTileRows, heads, s->tile.data(), width, count, rank, out, rank);
    }
    for (int64_t h = 0; h < heads; ++h) {
      const bool none =
          s->largest[h] == -std::numeric_limits<float>::infinity() && s->total[h] == 0;
      const float factor = none ? 0.0f : 1.0f / s->total[h];
      for (int64_t c = 0; c < rank; ++c) out[h * rank + c] *= factor;
      if (args.lse != nullptr) {
        args.lse[token * shape_.heads + first_head + h] = s->largest[h] + std::log(s->total[h]);
      }
    }
  }

  MlaShape shape_;
  const ops::Kernels& kernels_;
  ThreadPool& pool_;
  std::vector<Scratch> scratch_;
};

Result<std::unique_ptr<Attention>> create(const MlaShape& shape, const Resources& host) {
  return std::unique_ptr<Attention>(std::make_unique<SimdAttention>(shape, host));
}

int64_t workspace_bytes(const MlaShape& shape, int threads) {
  return threads * SimdAttention::bytes_per_thread(shape);
}

}  // namespace

const Backend& backend();

const Backend& backend() {
  static const Backend kBackend = {
      "cpu_simd", "all heads of a gathered tile at once; reads only the selected rows", kRules,
      create, workspace_bytes};
  return kBackend;
}

}  // namespace topknot::attention::cpu_simd
