// MLA on a GPU from sm_80 on: mma.sync and cp.async within the 99 KiB of shared memory that a block
// has on sm_86, sm_89 and sm_120.
//
// Calls of one object share its scratch: they belong on one stream.
//
// A token's list is cut into as many parts as fill the GPU once, and how many depends on the batch:
// the last bits of an output depend on how many tokens share the call, not on which or where.
#include <array>

#include "attention/attention.h"
#include "attention/backends/portable/launch_plan.h"
#include "base/assert.h"
#include "base/checked_math.h"
#include "base/log.h"
#include "base/try.h"
#include "device/cuda/cuda_error.h"
#include "device/cuda/current_device.h"
#include "device/cuda/gpu.h"

namespace topknot::attention::portable {
namespace {

using namespace capability;

constexpr Rule kRules[] = {
    {Fact::kDevice, exactly(DeviceKind::kCuda), "it runs on a GPU", "--device cuda:0"},
    {Fact::kSm, at_least(80), "mma.sync of bf16 and cp.async exist from sm_80 on"},
    {Fact::kSmemPerBlock, at_least(kLargestSmemBytes), "two tiles of 32 rows are in flight"},
    {Fact::kKvFormat, one_of(KvFormat::kBf16, KvFormat::kFp8Ds, KvFormat::kQ8_0),
     "no other row format is read", "--kv-cache-dtype bf16"},
    {Fact::kPageTokens, exactly(kvcache::kPageTokens), "a dense list is one of pages of 64 rows"},
    {Fact::kKvLoraRank, multiple_of(8), "rows are read 16 bytes at a time"},
    {Fact::kKvLoraRank, at_most(kGenericMaxWidth - kMaxRope), "a tile of rows fits into a block"},
    {Fact::kQkRopeHeadDim, multiple_of(8), "rows are read 16 bytes at a time"},
    {Fact::kQkRopeHeadDim, at_most(kMaxRope), "a tile of rows fits into a block"},
};

constexpr RowFormat kFormats[kRowFormats] = {RowFormat::kBf16, RowFormat::kFp8Ds, RowFormat::kQ8_0};

RowFormat row_format(KvFormat format) {
  switch (format) {
    case KvFormat::kBf16: return RowFormat::kBf16;
    case KvFormat::kFp8Ds: return RowFormat::kFp8Ds;
    case KvFormat::kQ8_0: return RowFormat::kQ8_0;
    default: break;
  }
  TOPKNOT_ASSERT(!"a row format that the rules refuse");
  return RowFormat::kBf16;
}

bool is_tiled(const MlaShape& shape) { return shape.kv_lora_rank == kRank; }
int tile_heads_of(const MlaShape& shape) {
  return is_tiled(shape) ? tile_heads_for(static_cast<int>(shape.heads)) : 16;
}

// The largest scratch for partial results, in blocks that run at once: one wave for equal lists,
// more for dense contexts of different lengths, whose longest then is cut finer.
constexpr int kDenseWaves = 2;

class PortableAttention final : public Attention {
 public:
  PortableAttention(const MlaShape& shape, int device)
      : shape_(shape),
        device_(device),
        tiled_(is_tiled(shape)),
        tile_heads_(tile_heads_of(shape)) {}

  // Readies the kernels and takes the scratch.
  Status start() {
    const device::CurrentDevice current(device_);
    TOPKNOT_CHECK_OK(device::cuda_status(current.error(), device_, "cannot use the GPU"));
    int sms = 0;
    TOPKNOT_CHECK_OK(
        device::cuda_status(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device_),
                            device_, "cannot count multiprocessors"));
    for (const RowFormat format : kFormats) {
      int blocks = 0;
      TOPKNOT_CHECK_OK(device::cuda_status(prepare(format, &blocks), device_,
                                           "cannot prepare the attention kernel"));
      slots_ = std::max(slots_, std::min(blocks, most_blocks_per_sm(tile_heads_)) *
                                    std::min(sms, kMostMultiprocessors));
    }
    return take_scratch();
  }

  Status plan(const MlaBatch& batch) override {
    planned_ = batch;
    const int heads = static_cast<int>(shape_.heads);
    if (batch.selection == Selection::kSparse) {
      splits_ = splits_for(batch.tokens, heads, tile_heads_, batch.topk, slots_);
    } else {
      splits_ = dense_splits_for(batch.tokens, heads, tile_heads_, batch.max_visible, slots_,
                                 kDenseWaves);
    }
    in_pairs_ = tiled_ && adds_in_pairs(splits_);
    return {};
  }

  Status run(const MlaArgs& args) override {
    TOPKNOT_ASSERT(args.tokens == planned_.tokens);
    TOPKNOT_ASSERT(args.selection == planned_.selection);
    TOPKNOT_ASSERT(args.kv.width == shape_.width());
    if (args.tokens == 0) return {};
    const device::CurrentDevice current(device_);
    const RowFormat format = row_format(args.kv.format);
    const MlaKernelArgs kernel_args = kernel_args_of(args);
    const auto stream = static_cast<cudaStream_t>(args.stream);
    cudaError_t status = tiled_ ? launch_tiled_mla({format, tile_heads_}, kernel_args, stream)
                                : launch_generic_mla(format, kernel_args, stream);
    if (status == cudaSuccess && splits_ > 1 && !in_pairs_) {
      status = launch_combine(kernel_args, stream);
    }
    return device::cuda_status(status, device_, "cannot launch attention");
  }

 private:
  cudaError_t prepare(RowFormat format, int* blocks_per_sm) const {
    if (tiled_) return prepare_tiled_mla({format, tile_heads_}, blocks_per_sm);
    return prepare_generic_mla(format, static_cast<int>(shape_.width()), blocks_per_sm);
  }

  // A launch with splits has at most kDenseWaves * slots_ blocks.
  Status take_scratch() {
    const int64_t blocks = int64_t{kDenseWaves} * slots_;
    const int64_t rows = blocks * std::min<int64_t>(shape_.heads, tile_heads_);
    const int64_t floats =
        scratch_floats(shape_.heads, shape_.kv_lora_rank, tile_heads_, slots_, kDenseWaves);
    const auto bytes = [](int64_t count) { return static_cast<size_t>(count) * sizeof(float); };
    TOPKNOT_TRY(partial_out_, device::DeviceBuffer::allocate(device_, bytes(floats), kPurpose));
    TOPKNOT_TRY(partial_lse_, device::DeviceBuffer::allocate(device_, bytes(rows), kPurpose));
    TOPKNOT_TRY(tickets_, device::DeviceBuffer::allocate(device_, bytes(blocks), kPurpose));
    TOPKNOT_TRY(const device::Stream stream, device::Stream::create(device_));
    TOPKNOT_CHECK_OK(device::fill(tickets_.data(), 0, tickets_.bytes(), stream));
    return stream.synchronize();
  }

  RowLists lists_of(const MlaArgs& args) const {
    if (args.selection == Selection::kSparse) {
      return {.pages = args.sparse.topk_slots,
              .stride = args.sparse.topk,
              .list_of = nullptr,
              .counts = nullptr,
              .count = static_cast<int32_t>(args.sparse.topk),
              .page_shift = 0};
    }
    static_assert(kvcache::kPageTokens == 1 << 6);
    return {.pages = args.dense.block_table,
            .stride = args.dense.max_pages,
            .list_of = args.dense.requests,
            .counts = args.dense.visible,
            .count = 0,
            .page_shift = 6};
  }

  MlaKernelArgs kernel_args_of(const MlaArgs& args) const {
    return {.q = args.q,
            .rows = args.kv.data,
            .lists = lists_of(args),
            .out = args.out,
            .lse = args.lse,
            .row_bytes = static_cast<int32_t>(args.kv.row_bytes),
            .partial_out = partial_out_.as<float>(),
            .partial_lse = partial_lse_.as<float>(),
            .tickets = in_pairs_ ? tickets_.as<uint32_t>() : nullptr,
            .tokens = args.tokens,
            .heads = static_cast<int32_t>(shape_.heads),
            .kv_lora_rank = static_cast<int32_t>(shape_.kv_lora_rank),
            .qk_rope_head_dim = static_cast<int32_t>(shape_.qk_rope_head_dim),
            .splits = splits_,
            .sm_scale = args.sm_scale};
  }

  static constexpr std::string_view kPurpose = "partial results of attention";

  MlaShape shape_;
  int device_;
  bool tiled_;
  int tile_heads_;
  int slots_ = 0;  // blocks that the GPU runs at once, of the format that allows most
  device::DeviceBuffer partial_out_, partial_lse_, tickets_;
  MlaBatch planned_;
  int splits_ = 1;
  bool in_pairs_ = false;
};

Result<std::unique_ptr<Attention>> create(const MlaShape& shape, const Resources& resources) {
  auto attention = std::make_unique<PortableAttention>(shape, resources.cuda_device);
  TOPKNOT_CHECK_OK(attention->start());
  if (!is_tiled(shape)) {
    log_info("attention: no tile is unrolled for kv_lora_rank ", shape.kv_lora_rank,
             "; the generic kernel takes up to 3 times as long for a byte of the cache as with ",
             kRank);
  }
  return std::unique_ptr<Attention>(std::move(attention));
}

// On the GPU, for the largest one.
int64_t workspace_bytes(const MlaShape& shape, int /*threads*/) {
  const int tile_heads = tile_heads_of(shape);
  const int64_t slots = kMostMultiprocessors * most_blocks_per_sm(tile_heads);
  const int64_t blocks = kDenseWaves * slots;
  const int64_t rows = blocks * std::min<int64_t>(shape.heads, tile_heads);
  const int64_t floats =
      scratch_floats(shape.heads, shape.kv_lora_rank, tile_heads, slots, kDenseWaves);
  return (floats + rows + blocks) * static_cast<int64_t>(sizeof(float));
}

}  // namespace

const Backend& backend();

const Backend& backend() {
  static const Backend kBackend = {
      "portable",      "mma.sync tiles of 16 to 64 heads; reads only the selected rows",
      kRules,          create,
      workspace_bytes, ActivationType::kBf16};
  return kBackend;
}

}  // namespace topknot::attention::portable
