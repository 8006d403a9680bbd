// topknot_mla_*: an attention backend of the registry behind C functions.
#include <limits>
#include <memory>
#include <string>

#include "attention/registry.h"
#include "base/strings.h"
#include "base/try.h"
#include "kernels/check.h"
#include "kernels/failure.h"
#include "kernels/gpu_facts.h"
#include "kvcache/row.h"

using topknot::Result;
using topknot::Status;
using topknot::attention::MlaArgs;
using topknot::attention::Selection;
using topknot::capability::Fact;
using topknot::capability::KvFormat;
using topknot::kernels::guarded;
using topknot::kernels::invalid;

struct topknot_mla {
  std::unique_ptr<topknot::attention::Attention> attention;
  std::string backend;
  topknot_mla_shape shape;
  KvFormat format;
  topknot_mla_batch batch = {};
  bool planned = false;
};

namespace topknot::kernels {
namespace {

constexpr int32_t kWidest = 1 << 16;

Status create(const topknot_mla_shape* shape, topknot_mla** out) {
  constexpr const char* kName = "topknot_mla_create";
  if (out == nullptr) return invalid(kName, "mla is null");
  *out = nullptr;
  TOPKNOT_CHECK_OK(check_struct(shape, kName));
  TOPKNOT_CHECK_OK(check_range(kName, "heads", shape->heads, 1, kWidest));
  TOPKNOT_CHECK_OK(check_range(kName, "kv_lora_rank", shape->kv_lora_rank, 1, kWidest));
  TOPKNOT_CHECK_OK(check_range(kName, "qk_rope_head_dim", shape->qk_rope_head_dim, 0, kWidest));
  TOPKNOT_TRY(const KvFormat format, row_format(shape->row_format, kName));
  TOPKNOT_TRY(capability::Facts asked, gpu_facts(shape->device, kName));
  asked.set(Fact::kSelection, shape->dense != 0 ? Selection::kDense : Selection::kSparse)
      .set(Fact::kHeads, shape->heads)
      .set(Fact::kKvLoraRank, shape->kv_lora_rank)
      .set(Fact::kQkRopeHeadDim, shape->qk_rope_head_dim)
      .set(Fact::kTopk, 1)  // any: the list is given with each batch
      .set(Fact::kKvFormat, format)
      .set(Fact::kPageTokens, kvcache::kPageTokens)
      .set(Fact::kDtype, capability::ActivationType::kBf16);
  const capability::Choice choice = attention::select_backend(asked);
  if (!choice.chosen) return capability::refused(choice, asked, {});
  const attention::Backend& backend = attention::chosen_backend(choice);
  auto mla = std::make_unique<topknot_mla>();
  TOPKNOT_TRY(mla->attention,
              backend.create({shape->heads, shape->kv_lora_rank, shape->qk_rope_head_dim},
                             {.cuda_device = shape->device}));
  mla->backend = backend.name;
  mla->shape = *shape;
  mla->format = format;
  *out = mla.release();
  return {};
}

Status plan(topknot_mla* mla, const topknot_mla_batch* batch) {
  constexpr const char* kName = "topknot_mla_plan";
  if (mla == nullptr) return invalid(kName, "mla is null");
  TOPKNOT_CHECK_OK(check_struct(batch, kName));
  TOPKNOT_CHECK_OK(check_range(kName, "tokens", batch->tokens, 0, kMostTokens));
  TOPKNOT_CHECK_OK(check_range(kName, "topk", batch->topk, 0, kMostTokens));
  TOPKNOT_CHECK_OK(check_range(kName, "max_visible", batch->max_visible, 0, kMostSlots));
  const Selection selection = mla->shape.dense != 0 ? Selection::kDense : Selection::kSparse;
  mla->planned = false;
  TOPKNOT_CHECK_OK(
      mla->attention->plan({selection, batch->tokens, batch->topk, batch->max_visible}));
  mla->batch = *batch;
  mla->planned = true;
  return {};
}

Status check_selection(const topknot_mla& mla, const topknot_mla_args& args, const char* name) {
  if (mla.shape.dense == 0) {
    if (mla.batch.topk == 0) return {};
    return check_pointer(name, "topk_slots", args.topk_slots);
  }
  TOPKNOT_CHECK_OK(check_pointer(name, "block_table", args.block_table));
  TOPKNOT_CHECK_OK(check_pointer(name, "requests", args.requests));
  TOPKNOT_CHECK_OK(check_pointer(name, "visible", args.visible));
  return check_range(name, "max_pages", args.max_pages, 1, kMostSlots);
}

Status run(topknot_mla* mla, const topknot_mla_args* args, void* stream) {
  constexpr const char* kName = "topknot_mla_run";
  if (mla == nullptr) return invalid(kName, "mla is null");
  if (!mla->planned) return invalid(kName, "topknot_mla_plan was not called, or failed");
  TOPKNOT_CHECK_OK(check_struct(args, kName));
  if (mla->batch.tokens == 0) return {};
  TOPKNOT_CHECK_OK(check_pointer(kName, "q", args->q));
  TOPKNOT_CHECK_OK(check_pointer(kName, "kv_rows", args->kv_rows));
  TOPKNOT_CHECK_OK(check_pointer(kName, "out", args->out));
  TOPKNOT_CHECK_OK(check_range(kName, "slots", args->slots, 1, kMostSlots));
  if (!(args->sm_scale > 0 && args->sm_scale < std::numeric_limits<float>::infinity())) {
    return invalid(kName, "sm_scale is not a positive number");
  }
  TOPKNOT_CHECK_OK(check_selection(*mla, *args, kName));
  const int64_t width = mla->shape.kv_lora_rank + mla->shape.qk_rope_head_dim;
  MlaArgs call;
  call.q = args->q;
  // Backends read rows only; CacheRows is also what writers take.
  call.kv = {mla->format, static_cast<std::byte*>(const_cast<void*>(args->kv_rows)),
             width,       kvcache::row_bytes(mla->format, width, mla->shape.qk_rope_head_dim),
             args->slots, mla->shape.qk_rope_head_dim};
  call.selection = mla->shape.dense != 0 ? Selection::kDense : Selection::kSparse;
  call.sparse = {args->topk_slots, mla->batch.topk};
  call.dense = {args->block_table, args->max_pages, args->requests, args->visible};
  call.tokens = mla->batch.tokens;
  call.sm_scale = args->sm_scale;
  call.out = args->out;
  call.lse = args->lse;
  call.stream = stream;
  return mla->attention->run(call);
}

}  // namespace
}  // namespace topknot::kernels

extern "C" {

int64_t topknot_row_bytes(topknot_row_format format, int32_t kv_lora_rank,
                          int32_t qk_rope_head_dim) {
  const auto known = topknot::kernels::row_format(format, "topknot_row_bytes");
  if (!known || kv_lora_rank < 1 || qk_rope_head_dim < 0) return 0;
  return topknot::kvcache::row_bytes(*known, int64_t{kv_lora_rank} + qk_rope_head_dim,
                                     qk_rope_head_dim);
}

topknot_status topknot_mla_create(const topknot_mla_shape* shape, topknot_mla** mla) {
  return guarded([&] { return topknot::kernels::create(shape, mla); });
}

topknot_status topknot_mla_plan(topknot_mla* mla, const topknot_mla_batch* batch) {
  return guarded([&] { return topknot::kernels::plan(mla, batch); });
}

topknot_status topknot_mla_run(topknot_mla* mla, const topknot_mla_args* args, void* stream) {
  return guarded([&] { return topknot::kernels::run(mla, args, stream); });
}

const char* topknot_mla_backend(const topknot_mla* mla) {
  return mla != nullptr ? mla->backend.c_str() : "";
}

void topknot_mla_destroy(topknot_mla* mla) { delete mla; }

}  // extern "C"
