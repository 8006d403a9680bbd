// topknot_indexer_*: the CUDA indexer behind C functions.
#include <memory>
#include <optional>

#include "attention/indexer/cuda/cuda_indexer.h"
#include "attention/indexer/implementations.h"
#include "base/try.h"
#include "device/cuda/gpu.h"
#include "kernels/check.h"
#include "kernels/failure.h"
#include "kernels/gpu_facts.h"

using topknot::Result;
using topknot::Status;
using topknot::attention::CudaIndexer;
using topknot::attention::CudaIndexerArgs;
using topknot::capability::Fact;
using topknot::capability::KvFormat;
using topknot::kernels::guarded;

struct topknot_indexer {
  CudaIndexer indexer;
  topknot_indexer_shape shape;
  KvFormat format;
};

namespace topknot::kernels {
namespace {

constexpr int64_t kMostHeads = 128;  // what the kernels hold in shared memory
constexpr int64_t kWidestHead = 4096;

Status check_shape(const topknot_indexer_shape& shape, const char* name) {
  TOPKNOT_CHECK_OK(check_range(name, "heads", shape.heads, 1, kMostHeads));
  TOPKNOT_CHECK_OK(check_range(name, "head_dim", shape.head_dim, 1, kWidestHead));
  TOPKNOT_CHECK_OK(check_range(name, "topk", shape.topk, 1, kMostTokens));
  TOPKNOT_CHECK_OK(check_range(name, "max_tokens", shape.max_tokens, 1, kMostTokens));
  return check_range(name, "max_context", shape.max_context, 1, attention::kMaxIndexerContext);
}

// The rules of every part of it: scores, then the selection.
Status check_rules(const topknot_indexer_shape& shape, KvFormat format,
                   const attention::IndexerShape& internal) {
  TOPKNOT_TRY(capability::Facts asked, gpu_facts(shape.device, "topknot_indexer_create"));
  asked.set(Fact::kIndexHeads, shape.heads)
      .set(Fact::kIndexHeadDim, shape.head_dim)
      .set(Fact::kTopk, shape.topk)
      .set(Fact::kKvFormat, format)
      .set(Fact::kPageTokens, kvcache::kPageTokens)
      .set(Fact::kWorkspaceBytes, attention::cuda_indexer_workspace_bytes(internal, format));
  for (const auto& [operation, list] :
       {std::pair{"indexer scores", attention::indexer_implementations()},
        std::pair{"top-k", attention::top_k_implementations()}}) {
    const capability::Choice choice = capability::choose(operation, list, asked);
    if (!choice.chosen) return capability::refused(choice, asked, {});
  }
  return {};
}

Status create(const topknot_indexer_shape* shape, void* stream, topknot_indexer** out) {
  constexpr const char* kName = "topknot_indexer_create";
  if (out == nullptr) return invalid(kName, "indexer is null");
  *out = nullptr;
  TOPKNOT_CHECK_OK(check_struct(shape, kName));
  TOPKNOT_CHECK_OK(check_shape(*shape, kName));
  TOPKNOT_TRY(const KvFormat format, row_format(shape->key_format, kName));
  const attention::IndexerShape internal{shape->heads, shape->head_dim, shape->topk,
                                         shape->max_tokens, shape->max_context};
  TOPKNOT_CHECK_OK(check_rules(*shape, format, internal));
  TOPKNOT_TRY(CudaIndexer indexer,
              CudaIndexer::create(internal, format, device::Stream::borrow(shape->device, stream)));
  *out = new topknot_indexer{std::move(indexer), *shape, format};
  return {};
}

Status run(topknot_indexer* indexer, const topknot_indexer_args* args, void* stream) {
  constexpr const char* kName = "topknot_indexer_run";
  if (indexer == nullptr) return invalid(kName, "indexer is null");
  TOPKNOT_CHECK_OK(check_struct(args, kName));
  const topknot_indexer_shape& shape = indexer->shape;
  TOPKNOT_CHECK_OK(check_range(kName, "tokens", args->tokens, 0, shape.max_tokens));
  TOPKNOT_CHECK_OK(check_range(kName, "max_visible", args->max_visible, 0, shape.max_context));
  if (args->tokens == 0) return {};
  TOPKNOT_CHECK_OK(check_range(kName, "request_count", args->request_count, 1, args->tokens));
  TOPKNOT_CHECK_OK(check_range(kName, "max_pages", args->max_pages, 1, kMostSlots));
  TOPKNOT_CHECK_OK(check_range(kName, "slots", args->slots, 1, kMostSlots));
  TOPKNOT_CHECK_OK(check_pointer(kName, "q", args->q));
  TOPKNOT_CHECK_OK(check_pointer(kName, "weights", args->weights));
  TOPKNOT_CHECK_OK(check_pointer(kName, "key_rows", args->key_rows));
  TOPKNOT_CHECK_OK(check_pointer(kName, "block_table", args->block_table));
  TOPKNOT_CHECK_OK(check_pointer(kName, "requests", args->requests));
  TOPKNOT_CHECK_OK(check_pointer(kName, "visible", args->visible));
  TOPKNOT_CHECK_OK(check_pointer(kName, "positions", args->positions));
  CudaIndexerArgs call;
  call.q = static_cast<const uint16_t*>(args->q);
  call.weights = args->weights;
  // Keys are read only; CacheRows is also what writers take.
  call.keys = {indexer->format, static_cast<std::byte*>(const_cast<void*>(args->key_rows)),
               shape.head_dim, kvcache::row_bytes(indexer->format, shape.head_dim, 0), args->slots};
  call.block_table = args->block_table;
  call.max_pages = args->max_pages;
  call.requests = args->requests;
  call.visible = args->visible;
  call.tokens = args->tokens;
  call.request_count = args->request_count;
  call.max_visible = args->max_visible;
  call.positions = args->positions;
  return indexer->indexer.run(call, device::Stream::borrow(shape.device, stream));
}

}  // namespace
}  // namespace topknot::kernels

extern "C" {

topknot_status topknot_indexer_create(const topknot_indexer_shape* shape, void* stream,
                                      topknot_indexer** indexer) {
  return guarded([&] { return topknot::kernels::create(shape, stream, indexer); });
}

topknot_status topknot_indexer_run(topknot_indexer* indexer, const topknot_indexer_args* args,
                                   void* stream) {
  return guarded([&] { return topknot::kernels::run(indexer, args, stream); });
}

void topknot_indexer_destroy(topknot_indexer* indexer) { delete indexer; }

}  // extern "C"
