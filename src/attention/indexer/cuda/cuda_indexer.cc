#include "attention/indexer/cuda/cuda_indexer.h"

#include <algorithm>

#include "attention/indexer/cuda/index_scores.h"
#include "attention/indexer/cuda/quantize_index.h"
#include "attention/indexer/cuda/top_k.h"
#include "base/assert.h"
#include "base/checked_math.h"
#include "base/try.h"
#include "device/cuda/cuda_error.h"
#include "device/cuda/current_device.h"

namespace topknot::attention {
namespace {

using kvcache::KvFormat;

static_assert(kIndexPageTokens == kvcache::kPageTokens);

constexpr int64_t kAlignment = 256;
// One block selects from a row in registers up to this length; longer ones are worth splitting
// while there are few of them (measured on an H200: 64 rows of 128K take 44 us split, 67 us not).
constexpr int64_t kLongRow = 32768;
constexpr int64_t kMostSplitRows = 64;
// Queries of one request from which keys are worth keeping in registers while queries pass.
constexpr int64_t kPrefillTokens = 4;

int64_t round_up(int64_t value, int64_t step) { return ceil_div(value, step) * step; }

cudaStream_t handle(const device::Stream& stream) {
  return static_cast<cudaStream_t>(stream.get());
}

cudaError_t launch_index_scores(const IndexScoresArgs& args, bool prefill, cudaStream_t stream) {
  if (!index_scores_are_tuned(args)) return launch_generic_index_scores(args, stream);
  return prefill ? launch_prefill_index_scores(args, stream)
                 : launch_decode_index_scores(args, stream);
}

}  // namespace

CudaIndexer::Layout CudaIndexer::layout(const IndexerShape& shape, KvFormat format) {
  Layout l;
  l.split_rows = std::min(shape.max_tokens, kMostSplitRows);
  l.stride = round_up(shape.max_context, 4);
  const int64_t fixed = round_up(split_top_k_workspace_bytes(l.split_rows), kAlignment);
  const bool fp8 = format == KvFormat::kFp8Ds;
  const int64_t score_bytes = l.stride * static_cast<int64_t>(sizeof(float));
  const int64_t q_bytes = fp8 ? shape.heads * shape.head_dim * 2 : 0;
  const int64_t weight_bytes = fp8 ? shape.heads * static_cast<int64_t>(sizeof(float)) : 0;
  const int64_t room = kMaxIndexerWorkspaceBytes - fixed - 3 * kAlignment;
  l.slice = std::clamp<int64_t>(room / (score_bytes + q_bytes + weight_bytes), 1,
                                std::max<int64_t>(shape.max_tokens, 1));
  l.scores = fixed;
  l.q = l.scores + round_up(l.slice * score_bytes, kAlignment);
  l.weights = l.q + round_up(l.slice * q_bytes, kAlignment);
  l.bytes = l.weights + round_up(l.slice * weight_bytes, kAlignment);
  return l;
}

int64_t cuda_indexer_workspace_bytes(const IndexerShape& shape, KvFormat format) {
  return CudaIndexer::layout(shape, format).bytes;
}

Result<CudaIndexer> CudaIndexer::create(const IndexerShape& shape, KvFormat format,
                                        const device::Stream& stream) {
  TOPKNOT_ASSERT(format == KvFormat::kBf16 || format == KvFormat::kFp8Ds);
  TOPKNOT_ASSERT(format == KvFormat::kBf16 || shape.head_dim == kFp8IndexHeadDim);
  TOPKNOT_ASSERT(shape.max_context <= kMaxIndexerContext);
  CudaIndexer indexer;
  indexer.shape_ = shape;
  indexer.format_ = format;
  indexer.layout_ = layout(shape, format);
  TOPKNOT_ASSERT(indexer.layout_.bytes <= kMaxIndexerWorkspaceBytes);
  TOPKNOT_TRY(indexer.workspace_, device::DeviceBuffer::allocate(
                                      stream.device(), static_cast<size_t>(indexer.layout_.bytes),
                                      "the workspace of the indexer"));
  const auto zeroed = static_cast<size_t>(split_top_k_zeroed_bytes(indexer.layout_.split_rows));
  TOPKNOT_CHECK_OK(device::fill(indexer.workspace_.data(), 0, zeroed, stream));
  return indexer;
}

Status CudaIndexer::run(const CudaIndexerArgs& args, const device::Stream& stream) {
  TOPKNOT_ASSERT(args.tokens <= shape_.max_tokens);
  TOPKNOT_ASSERT(args.max_visible <= shape_.max_context);
  TOPKNOT_ASSERT(args.keys.format == format_);
  TOPKNOT_ASSERT(args.scores == nullptr || args.scores_stride % 4 == 0);
  const device::CurrentDevice current(stream.device());
  const bool prefill = args.tokens >= kPrefillTokens * args.request_count;
  for (int64_t first = 0; first < args.tokens; first += layout_.slice) {
    const IndexScoresArgs scores =
        slice_of(args, first, std::min(layout_.slice, args.tokens - first));
    if (args.max_visible > shape_.topk) TOPKNOT_CHECK_OK(score(scores, prefill, stream));
    TOPKNOT_CHECK_OK(select(args, scores, first, stream));
  }
  return {};
}

IndexScoresArgs CudaIndexer::slice_of(const CudaIndexerArgs& args, int64_t first,
                                      int64_t tokens) const {
  IndexScoresArgs s = {};
  s.q = args.q + first * shape_.heads * shape_.head_dim;
  s.weights = args.weights + first * shape_.heads;
  s.key_rows = args.keys.data;
  s.block_table = args.block_table;
  s.max_pages = args.max_pages;
  s.requests = args.requests + first;
  s.visible = args.visible + first;
  const bool exported = args.scores != nullptr;
  s.scores = exported ? args.scores + first * args.scores_stride
                      : reinterpret_cast<float*>(workspace_.as<std::byte>() + layout_.scores);
  s.scores_stride = exported ? args.scores_stride : layout_.stride;
  s.tokens = tokens;
  s.max_visible = args.max_visible;
  s.unscored_up_to = shape_.topk;
  s.heads = static_cast<int32_t>(shape_.heads);
  s.head_dim = static_cast<int32_t>(shape_.head_dim);
  s.format = format_ == KvFormat::kBf16 ? IndexKeyFormat::kBf16 : IndexKeyFormat::kFp8;
  return s;
}

Status CudaIndexer::score(IndexScoresArgs scores, bool prefill,
                          const device::Stream& stream) const {
  cudaError_t error = cudaSuccess;
  if (format_ == KvFormat::kFp8Ds) {
    auto* q = reinterpret_cast<uint16_t*>(workspace_.as<std::byte>() + layout_.q);
    auto* weights = reinterpret_cast<float*>(workspace_.as<std::byte>() + layout_.weights);
    error = launch_quantize_index_queries(
        {scores.q, scores.weights, q, weights, scores.tokens * shape_.heads}, handle(stream));
    scores.q = q;
    scores.weights = weights;
  }
  if (error == cudaSuccess) error = launch_index_scores(scores, prefill, handle(stream));
  return device::cuda_status(error, stream.device(), "the indexer cannot score keys");
}

Status CudaIndexer::select(const CudaIndexerArgs& args, const IndexScoresArgs& scores,
                           int64_t first, const device::Stream& stream) const {
  const TopKArgs top_k = {scores.scores,  scores.scores_stride,
                          scores.visible, args.positions + first * shape_.topk,
                          scores.tokens,  static_cast<int32_t>(shape_.topk)};
  const bool split = args.max_visible > kLongRow && scores.tokens <= layout_.split_rows;
  const cudaError_t error =
      split ? launch_split_top_k(top_k, {workspace_.data(), layout_.split_rows}, handle(stream))
            : launch_row_top_k(top_k, handle(stream));
  return device::cuda_status(error, stream.device(), "the indexer cannot select keys");
}

}  // namespace topknot::attention
