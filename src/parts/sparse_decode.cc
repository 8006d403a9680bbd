// include/topknot/attention.h over attention/: every argument is checked here, since backends trust
// theirs.
#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "attention/registry.h"
#include "base/checked_math.h"
#include "base/strings.h"
#include "base/thread_pool.h"
#include "base/try.h"
#include "capability/device_facts.h"
#include "device/machine.h"
#include "kvcache/cache.h"
#include "ops/cpu/kernels.h"
#include "plan/operations.h"
#include "plan/plan.h"
#include "topknot/attention.h"

namespace topknot {
namespace {

using capability::Fact;
using capability::Facts;

int64_t element_bytes(ElementType type) { return type == ElementType::kF32 ? 4 : 2; }
const char* element_name(ElementType type) { return type == ElementType::kF32 ? "f32" : "bf16"; }

Error out_of_range(std::string_view name, int64_t value, int64_t least, int64_t most) {
  return Error{.code = Code::kOutOfRange,
               .what = cat(name, " ", value, " is out of range"),
               .where = "topknot/attention.h",
               .why = cat("needed: ", least, " to ", most),
               .fix = "give the size of the arrays as they are"};
}

Status check_range(std::string_view name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return {};
  return out_of_range(name, value, least, most);
}

Status check_shape(const SparseMlaShape& shape, const SparseMlaOptions& options) {
  TOPKNOT_CHECK_OK(check_range("heads", shape.heads, 1, kMaxMlaHeads));
  TOPKNOT_CHECK_OK(check_range("kv_lora_rank", shape.kv_lora_rank, 1, kMaxMlaWidth));
  TOPKNOT_CHECK_OK(check_range("qk_rope_head_dim", shape.qk_rope_head_dim, 1, kMaxMlaWidth));
  TOPKNOT_CHECK_OK(check_range("topk", shape.topk, 1, kMaxMlaTopk));
  TOPKNOT_CHECK_OK(check_range("threads", options.threads, 0, plan::kMaxThreads));
  for (const ElementType type : {shape.activation_type, shape.kv_row_type}) {
    if (type == ElementType::kF32 || type == ElementType::kBf16) continue;
    return Error{.code = Code::kInvalidArgument,
                 .what = "an element type is not one of ElementType",
                 .where = "SparseMlaShape",
                 .why = cat("found the value ", static_cast<int>(type)),
                 .fix = "ElementType::kF32 or ElementType::kBf16"};
  }
  return {};
}

Facts facts_of(const SparseMlaShape& shape, const plan::Target& target) {
  const auto format = shape.kv_row_type == ElementType::kF32 ? capability::KvFormat::kF32
                                                             : capability::KvFormat::kBf16;
  return plan::target_facts(target)
      .set(Fact::kSelection, capability::Selection::kSparse)
      .set(Fact::kHeads, shape.heads)
      .set(Fact::kKvLoraRank, shape.kv_lora_rank)
      .set(Fact::kQkRopeHeadDim, shape.qk_rope_head_dim)
      .set(Fact::kHeadSize, shape.kv_lora_rank + shape.qk_rope_head_dim)
      .set(Fact::kTopk, shape.topk)
      .set(Fact::kKvFormat, format)
      .set(Fact::kPageTokens, kvcache::kPageTokens);
}

// The machine this runs on, as far as it is reached from here.
Result<plan::Target> host_target(const std::string& device) {
  if (device.starts_with("cuda")) {
    return Error{.code = Code::kUnsupported,
                 .what = cat("sparse MLA over pointers of '", printable(device), "' is refused"),
                 .where = "SparseMlaOptions::device",
                 .why = "needed: host memory; device memory is not taken in this version",
                 .fix = "device = \"cpu\", and copies in host memory"};
  }
  return plan::choose_target(device::machine_of(device::host_facts(), {}), device, 1);
}

Result<const attention::Backend*> choose_backend(const Facts& asked, const std::string& forced,
                                                 ElementType activation_type) {
  const capability::Choice choice = attention::select_backend(asked, forced);
  if (!choice.chosen) return capability::refused(choice, asked, forced);
  const attention::Backend& backend = attention::chosen_backend(choice);
  const ElementType taken = backend.activations == capability::ActivationType::kF32
                                ? ElementType::kF32
                                : ElementType::kBf16;
  if (taken != activation_type) {
    return Error{.code = Code::kUnsupported,
                 .what = cat("'", backend.name, "' does not take queries of ",
                             element_name(activation_type)),
                 .where = "SparseMlaShape::activation_type",
                 .why = cat("needed: ", element_name(taken)),
                 .fix = "convert q, or choose another backend"};
  }
  return &backend;
}

struct Range {
  const char* name;
  const void* begin;
  uint64_t bytes;
  uint64_t alignment;
  bool may_be_null = false;
};

Error bad_pointer(const char* name, std::string why, std::string fix) {
  return Error{.code = Code::kInvalidArgument,
               .what = cat("the pointer ", name, " cannot be used"),
               .where = "SparseMlaDecodeArgs",
               .why = std::move(why),
               .fix = std::move(fix)};
}

Status check_pointer(const Range& range) {
  if (range.begin == nullptr) {
    if (range.may_be_null) return {};
    return bad_pointer(range.name, cat("it is null; ", range.bytes, " bytes are needed"),
                       "point it at an array of the size that the header says");
  }
  const auto address = reinterpret_cast<uintptr_t>(range.begin);
  if (address % range.alignment != 0) {
    return bad_pointer(range.name, cat("its address is no multiple of ", range.alignment),
                       "align it to an element");
  }
  uintptr_t end = 0;
  if (add_overflows(address, static_cast<uintptr_t>(range.bytes), &end)) {
    return bad_pointer(range.name, cat(range.bytes, " bytes from it on leave the address space"),
                       "give the sizes of the arrays as they are");
  }
  return {};
}

Status check_apart(const Range& written, const Range& other) {
  if (written.begin == nullptr || other.begin == nullptr) return {};
  const auto a = reinterpret_cast<uintptr_t>(written.begin);
  const auto b = reinterpret_cast<uintptr_t>(other.begin);
  if (a + written.bytes <= b || b + other.bytes <= a) return {};
  return bad_pointer(written.name, cat("its array overlaps that of ", other.name),
                     "give it memory of its own");
}

}  // namespace

struct SparseMlaDecode::State {
  State(const SparseMlaShape& asked, int threads) : shape(asked), pool(threads) {}

  int64_t width() const { return shape.kv_lora_rank + shape.qk_rope_head_dim; }

  Status check_sizes(const SparseMlaDecodeArgs& args) const {
    TOPKNOT_CHECK_OK(check_range("tokens", args.tokens, 0, kMaxMlaTokens));
    TOPKNOT_CHECK_OK(check_range("slots", args.slots, 1, kMaxMlaSlots));
    // At most 2^24 * 2^16 * 2^17: no product of these wraps.
    TOPKNOT_CHECK_OK(check_range("tokens * heads * (kv_lora_rank + qk_rope_head_dim)",
                                 args.tokens * shape.heads * width(), 0, kMaxMlaElements));
    if (!(args.sm_scale > 0) || std::isinf(args.sm_scale)) {
      return Error{.code = Code::kInvalidArgument,
                   .what = cat("sm_scale ", args.sm_scale, " is not a positive number"),
                   .where = "SparseMlaDecodeArgs",
                   .why = "scores are multiplied by it before the softmax",
                   .fix = "1/sqrt(qk_nope_head_dim + qk_rope_head_dim)"};
    }
    if (args.stream != nullptr) {
      return bad_pointer("stream", "it is of a GPU; this decodes on the cpu", "leave it null");
    }
    return {};
  }

  Status check_pointers(const SparseMlaDecodeArgs& args) const {
    const auto bytes = [](int64_t rows, int64_t columns, int64_t element) {
      return static_cast<uint64_t>(rows * columns * element);
    };
    const int64_t type = element_bytes(shape.activation_type);
    const int64_t row_type = element_bytes(shape.kv_row_type);
    const int64_t rows = args.tokens * shape.heads;
    const auto align = [](int64_t element) { return static_cast<uint64_t>(element); };
    const Range out = {"out", args.out, bytes(rows, shape.kv_lora_rank, type), align(type)};
    const Range lse = {"lse", args.lse, bytes(rows, 1, 4), 4, true};
    const Range inputs[] = {
        {"q", args.q, bytes(rows, width(), type), align(type)},
        {"kv_rows", args.kv_rows, bytes(args.slots, width(), row_type), align(row_type)},
        {"topk_slots", args.topk_slots, bytes(args.tokens, shape.topk, 4), 4},
    };
    for (const Range& each : inputs) TOPKNOT_CHECK_OK(check_pointer(each));
    for (const Range& written : {out, lse}) {
      TOPKNOT_CHECK_OK(check_pointer(written));
      for (const Range& each : inputs) TOPKNOT_CHECK_OK(check_apart(written, each));
    }
    return check_apart(lse, out);
  }

  Status check_slots(const SparseMlaDecodeArgs& args) const {
    const int64_t count = args.tokens * shape.topk;
    const auto* const end = args.topk_slots + count;
    const auto* const bad = std::find_if(
        args.topk_slots, end, [&](int32_t slot) { return slot < -1 || slot >= args.slots; });
    if (bad == end) return {};
    const int64_t at = bad - args.topk_slots;
    return Error{.code = Code::kOutOfRange,
                 .what = cat("slot ", *bad, " does not exist"),
                 .where = cat("topk_slots[", at / shape.topk, ", ", at % shape.topk, "]"),
                 .why = cat("kv_rows has ", args.slots, " slots, and -1 is an empty entry"),
                 .fix = "give physical slots: page * page_tokens + offset"};
  }

  SparseMlaShape shape;
  ThreadPool pool;
  std::string name;
  std::unique_ptr<attention::Attention> attention;
};

SparseMlaDecode::SparseMlaDecode(std::unique_ptr<State> state) : state_(std::move(state)) {}
SparseMlaDecode::SparseMlaDecode(SparseMlaDecode&&) noexcept = default;
SparseMlaDecode& SparseMlaDecode::operator=(SparseMlaDecode&&) noexcept = default;
SparseMlaDecode::~SparseMlaDecode() = default;

const std::string& SparseMlaDecode::attention_backend() const { return state_->name; }

Result<SparseMlaDecode> SparseMlaDecode::create(const SparseMlaShape& shape,
                                                const SparseMlaOptions& options) {
  TOPKNOT_CHECK_OK(check_shape(shape, options));
  TOPKNOT_TRY(const plan::Target target, host_target(options.device));
  TOPKNOT_TRY(
      const attention::Backend* const backend,
      choose_backend(facts_of(shape, target), options.attention_backend, shape.activation_type));
  const int threads =
      options.threads > 0 ? options.threads : std::min(available_cores(), plan::kMaxThreads);
  const attention::MlaShape sizes = {shape.heads, shape.kv_lora_rank, shape.qk_rope_head_dim};
  try {
    auto state = std::make_unique<State>(shape, threads);
    state->name = backend->name;
    TOPKNOT_TRY(state->attention,
                backend->create(
                    sizes, {.pool = &state->pool, .kernels = ops::available_kernels().front()}));
    return SparseMlaDecode(std::move(state));
  } catch (const std::bad_alloc&) {
    const auto bytes = static_cast<uint64_t>(backend->workspace_bytes(sizes, threads));
    return Error{.code = Code::kResource,
                 .what = "no memory for the scratch of sparse MLA",
                 .where = std::string(backend->name),
                 .why = cat("needed: ", human_bytes(bytes), " for ", threads, " threads"),
                 .fix = "fewer threads"};
  }
}

Status SparseMlaDecode::run(const SparseMlaDecodeArgs& args) {
  TOPKNOT_CHECK_OK(state_->check_sizes(args));
  if (args.tokens == 0) return {};
  TOPKNOT_CHECK_OK(state_->check_pointers(args));
  TOPKNOT_CHECK_OK(state_->check_slots(args));
  const SparseMlaShape& shape = state_->shape;
  const int64_t row_bytes = state_->width() * element_bytes(shape.kv_row_type);
  attention::MlaArgs mla;
  mla.q = args.q;
  // CacheRows serves writers, too; a backend only reads.
  mla.kv = {.format = shape.kv_row_type == ElementType::kF32 ? capability::KvFormat::kF32
                                                             : capability::KvFormat::kBf16,
            .data = static_cast<std::byte*>(const_cast<void*>(args.kv_rows)),
            .width = state_->width(),
            .row_bytes = row_bytes,
            .slots = args.slots};
  mla.selection = attention::Selection::kSparse;
  mla.sparse = {args.topk_slots, shape.topk};
  mla.tokens = args.tokens;
  mla.sm_scale = args.sm_scale;
  mla.out = args.out;
  mla.lse = args.lse;
  TOPKNOT_CHECK_OK(state_->attention->plan(
      {.selection = mla.selection, .tokens = args.tokens, .topk = shape.topk}));
  return state_->attention->run(mla);
}

}  // namespace topknot
