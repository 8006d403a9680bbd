#include "plan/plan.h"

#include <algorithm>

#include "attention/indexer/indexer.h"
#include "base/checked_math.h"
#include "base/strings.h"
#include "base/try.h"
#include "ops/implementations.h"
#include "plan/placement.h"

namespace topknot::plan {
namespace {

using namespace capability;

// Of the memory that is free beside the weights, the share a context chosen by us may take.
constexpr double kCacheShare = 0.8;

Result<ActivationType> resolve_dtype(const std::string& name) {
  if (name == "auto" || name == "f32" || name == "float32") return ActivationType::kF32;
  if (name == "bf16" || name == "bfloat16") return ActivationType::kBf16;
  if (name == "f16" || name == "fp16" || name == "float16" || name == "half") {
    return Error{
        .code = Code::kUnsupported,
        .what = cat("--dtype ", name, " is refused"),
        .why =
            "needed: a residual stream that holds values beyond 65504; found: fp16, in which "
            "the residual of these models overflows and the text becomes noise",
        .fix = "--dtype bf16, or --dtype f32"};
  }
  return Error{.code = Code::kInvalidArgument,
               .what = cat("--dtype '", printable(name), "' is not known"),
               .fix = "auto, f32 or bf16"};
}

Result<KvFormat> resolve_kv_format(const std::string& name) {
  if (name == "auto" || name == "bfloat16") return KvFormat::kBf16;
  if (name == "float32") return KvFormat::kF32;
  if (name == "fp8" || name == "fp8_ds_mla") return KvFormat::kFp8Ds;
  const auto format = kv_format_from_name(name);
  if (format && *format != KvFormat::kF16) return *format;
  return Error{.code = Code::kInvalidArgument,
               .what = cat("--kv-cache-dtype '", printable(name), "' is not a row format"),
               .why = name == "f16" ? "latent rows of these models leave fp16's range" : "",
               .fix = "auto, f32 or bf16"};
}

kvcache::CacheShape cache_shape(const model::ModelConfig& config, bool sparse, KvFormat format) {
  kvcache::CacheShape shape;
  shape.format = format;
  shape.latent_width = config.latent_width();
  shape.latent_tail = config.qk_rope_head_dim;
  shape.index_width = sparse ? config.indexer->head_dim : 0;
  shape.layer_has_index.resize(static_cast<size_t>(config.layers));
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    shape.layer_has_index[static_cast<size_t>(layer)] = sparse && config.has_own_indexer(layer);
  }
  return shape;
}

// Names of one option, checked before anything is resolved: a name that does not exist is no
// refusal.
Status check_names(const PlanRequest& request) {
  if (request.kernels == "auto") return {};
  std::vector<std::string> names = {"auto"};
  for (const auto& each : ops::vector_implementations()) names.emplace_back(each.name);
  if (std::find(names.begin(), names.end(), request.kernels) != names.end()) return {};
  const auto near = nearest(request.kernels, names, 1);
  return Error{.code = Code::kInvalidArgument,
               .what = cat("--kernels '", printable(request.kernels), "' is not known"),
               .fix = near.empty() ? fmt::format("{}", fmt::join(names, ", "))
                                   : cat("did you mean '", near.front(), "'?")};
}

// Tokens of each sequence, in whole pages, whose slots can be numbered.
int64_t most_slots(int64_t sequences) {
  return kvcache::kMaxSlots / sequences / kvcache::kPageTokens * kvcache::kPageTokens;
}

Status check_context(const model::ModelConfig& config, const PlanRequest& request) {
  const int64_t most = std::min(config.context_length, most_slots(request.sequences));
  if (request.context >= 0 && request.context <= most) return {};
  return Error{
      .code = Code::kOutOfRange,
      .what = cat("a context of ", request.context, " tokens is out of range"),
      .where = "-c, --ctx-size",
      .why = cat("the model was trained for ", config.context_length, " (", config.architecture,
                 ".context_length)",
                 most < config.context_length
                     ? cat(", and ", request.sequences, " sequences share ", kvcache::kMaxSlots,
                           " slots in whole pages of ", kvcache::kPageTokens)
                     : std::string()),
      .fix = cat("-c 1 to ", most, "; to go beyond, --override-kv ", config.architecture,
                 ".context_length=int:N, and expect poor text")};
}

int64_t whole_pages(int64_t tokens) {
  return std::max<int64_t>(tokens / kvcache::kPageTokens, 1) * kvcache::kPageTokens;
}

// What is not mapped from the file cannot be read again: without room for it nothing runs.
bool anonymous_does_not_fit(const Plan& plan) {
  const MemoryUse& host = plan.memory.devices.back();
  return host.usable && host.total() - host.weights > *host.usable;
}

class Planner {
 public:
  Planner(const model::ModelConfig& config, const model::CheckedTensors& tensors,
          const PlanRequest& request)
      : config_(config), tensors_(tensors), request_(request) {}

  Result<Plan> plan(const device::Machine& machine) {
    TOPKNOT_CHECK_OK(check_ranges(request_));
    TOPKNOT_CHECK_OK(check_names(request_));
    TOPKNOT_CHECK_OK(check_context(config_, request_));
    TOPKNOT_TRY(plan_.dtype, resolve_dtype(request_.dtype));
    TOPKNOT_TRY(format_, resolve_kv_format(request_.kv_cache_dtype));
    TOPKNOT_TRY(plan_.target, choose_target(machine, request_.device, request_.ranks));
    TOPKNOT_CHECK_OK(check_backend_name());
    const SplitUnits units = split_units(config_, tensors_);
    TOPKNOT_CHECK_OK(check_split(config_, units, request_.ranks));
    heads_ = share_of_rank(config_, tensors_.vocab, units, request_.ranks, 0).heads;
    choose_selection();
    plan_.cache = cache_shape(config_, plan_.sparse, format_);
    plan_.sequences = request_.sequences;
    plan_.threads = request_.threads > 0
                        ? request_.threads
                        : std::clamp(plan_.target.host.cores.value_or(1), 1, kMaxThreads);
    // Only which backend was chosen matters to memory, and only memory to the context.
    resolve(request_.context > 0 ? request_.context : kvcache::kPageTokens);
    choose_context();
    resolve(plan_.context);
    plan_.cache_bytes =
        saturating_mul(saturating_mul(static_cast<uint64_t>(plan_.cache.bytes_per_token()),
                                      static_cast<uint64_t>(plan_.context)),
                       static_cast<uint64_t>(plan_.sequences));
    TOPKNOT_CHECK_OK(place());
    PriceRequest price{plan_.sparse, plan_.cache, plan_.context, plan_.ubatch,
                       plan_.target.disk_bytes_per_second};
    if (request_.disk_bytes_per_second > 0) {
      price.disk_bytes_per_second = request_.disk_bytes_per_second;
    }
    plan_.price = estimate_price(config_, tensors_, price, plan_.target);
    return std::move(plan_);
  }

 private:
  Status check_backend_name() const {
    if (request_.attention_backend.empty()) return {};
    const Facts asked = attention_facts(config_, operation_request(format_), plan_.target);
    const Choice choice = request_.backends.select(asked, request_.attention_backend);
    const auto named = [&](const Candidate& each) {
      return each.name == request_.attention_backend;
    };
    if (std::any_of(choice.candidates.begin(), choice.candidates.end(), named)) return {};
    return refused(choice, asked, request_.attention_backend);
  }

  void choose_selection() {
    plan_.sparse = config_.indexer.has_value() && !request_.dense;
    plan_.attention_reason = config_.sparse_reason;
    if (config_.indexer && request_.dense) {
      plan_.attention_reason = cat("dense was asked for; ", config_.sparse_reason);
      plan_.warnings.push_back(cat("dense attention on a model trained for sparse attention (",
                                   config_.sparse_reason, "): beyond ", config_.indexer->topk,
                                   " tokens it reads every key, and its text may differ"));
    } else if (!config_.indexer && config_.architecture == "glm-dsa") {
      plan_.warnings.push_back(cat("attention is dense: ", config_.sparse_reason));
    }
  }

  OperationRequest operation_request(KvFormat format) const {
    OperationRequest request;
    request.sparse = plan_.sparse;
    request.format = format;
    request.dtype = plan_.dtype;
    request.backends = &request_.backends;
    request.attention_backend = request_.attention_backend;
    request.kernels = request_.kernels;
    request.heads = heads_;
    return request;
  }

  void resolve(int64_t context) {
    plan_.context = context;
    plan_.ubatch = std::min(request_.ubatch, context);
    OperationRequest request = operation_request(format_);
    if (plan_.sparse) {
      request.indexer_workspace_bytes =
          attention::indexer_workspace_bytes(indexer_shape(config_, plan_.ubatch, context),
                                             plan_.target.on_host() ? plan_.threads : 1);
    }
    plan_.operations = resolve_operations(config_, tensors_, request, plan_.target);
    for (const Operation& each : plan_.operations) {
      if (each.name() == kAttentionDecode) plan_.attention = each.choice;
      if (each.name() == kNorms) plan_.kernels = each.chosen();
    }
    plan_.attention_backend =
        plan_.attention.chosen ? request_.backends.chosen(plan_.attention) : nullptr;
  }

  MemoryRequest memory_request() const {
    MemoryRequest request;
    request.sparse = plan_.sparse;
    request.cache = plan_.cache;
    request.context = plan_.context;
    request.sequences = plan_.sequences;
    request.ubatch = plan_.ubatch;
    request.threads = plan_.threads;
    request.reference = plan_.kernels == "reference";
    request.attention_backend = plan_.attention_backend;
    return request;
  }

  // Chosen by us, a context takes a share of what is free beside the weights; at least a page.
  void choose_context() {
    int64_t most = std::min(config_.context_length, most_slots(plan_.sequences));
    if (plan_.sparse) most = std::min(most, attention::kMaxIndexerContext);
    MemoryRequest request = memory_request();
    request.ubatch = std::min(request_.ubatch, most);
    largest_ = largest_context(config_, tensors_, request, plan_.target, most);
    if (request_.context > 0) return;
    const double share = plan_.target.on_host() ? kCacheShare : 1;
    const int64_t wanted = largest_ == most && share_fits(request, most, share)
                               ? most
                               : whole_pages(static_cast<int64_t>(share * double(largest_)));
    plan_.context = std::min(most, wanted);
  }

  // The whole of the trained context is taken when it leaves as much free.
  bool share_fits(MemoryRequest request, int64_t context, double share) const {
    request.context = static_cast<int64_t>(static_cast<double>(context) / share);
    return measure_memory(config_, tensors_, request, plan_.target).fits();
  }

  Status place() {
    const MemoryRequest request = memory_request();
    plan_.memory = measure_memory(config_, tensors_, request, plan_.target);
    if (!plan_.memory.countable()) return uncountable();
    plan_.memory.largest_context = largest_;
    if (plan_.memory.usable_is_total) {
      plan_.notes.push_back("usable memory is not stated: all memory is taken as usable");
    }
    if (plan_.memory.fits()) return {};
    plan_.memory.remedies =
        find_remedies(config_, tensors_, request, plan_.target, smaller_formats());
    if (plan_.target.on_host() && !anonymous_does_not_fit(plan_)) {
      const MemoryUse& host = plan_.memory.devices.front();
      plan_.warnings.push_back(cat("weights do not fit in memory beside the rest (",
                                   human_bytes(host.total()), " of ", human_bytes(*host.usable),
                                   "): they will be read from disk again and again"));
    }
    return {};
  }

  Error uncountable() const {
    return {
        .code = Code::kOutOfRange,
        .what = cat("a context of ", plan_.context, " tokens needs more bytes than 64 bits count"),
        .where = "-c, --ctx-size",
        .why = cat(plan_.memory.bytes_per_token, " bytes of cache a token, ", plan_.sequences,
                   plan_.sequences == 1 ? " sequence, " : " sequences, ", plan_.target.ranks,
                   plan_.target.ranks == 1 ? " rank" : " ranks"),
        .fix = largest_ > 0 ? cat("-c 1 to ", largest_) : "fewer sequences or ranks"};
  }

  // Row formats of fewer bytes that a backend takes here.
  std::vector<KvFormat> smaller_formats() const {
    std::vector<KvFormat> out;
    for (const KvFormat format : {KvFormat::kBf16, KvFormat::kFp8Ds, KvFormat::kQ8_0}) {
      kvcache::CacheShape shape = plan_.cache;
      shape.format = format;
      if (shape.bytes_per_token() >= plan_.cache.bytes_per_token()) continue;
      const Facts asked = attention_facts(config_, operation_request(format), plan_.target);
      if (request_.backends.select(asked).chosen) out.push_back(format);
    }
    return out;
  }

  const model::ModelConfig& config_;
  const model::CheckedTensors& tensors_;
  const PlanRequest& request_;
  KvFormat format_ = KvFormat::kBf16;
  int64_t heads_ = 0;    // of the first rank
  int64_t largest_ = 0;  // context that fits
  Plan plan_;
};

}  // namespace

Status check_ranges(const PlanRequest& request) {
  if (request.threads < 0 || request.threads > kMaxThreads) {
    return Error{.code = Code::kOutOfRange,
                 .what = cat(request.threads, " threads are out of range"),
                 .where = "-t, --threads",
                 .why = cat("needed: 1 to ", kMaxThreads),
                 .fix = cat("-t 1 to ", kMaxThreads, ", or 0 for every core")};
  }
  if (request.ubatch < 1 || request.ubatch > kMaxUbatch) {
    return Error{.code = Code::kOutOfRange,
                 .what = cat("a step of ", request.ubatch, " tokens is out of range"),
                 .where = "-ub, --ubatch-size",
                 .why = cat("needed: 1 to ", kMaxUbatch),
                 .fix = cat("--ubatch-size 1 to ", kMaxUbatch)};
  }
  if (request.sequences < 1 || request.sequences > kMaxSequences) {
    return Error{.code = Code::kOutOfRange,
                 .what = cat(request.sequences, " sequences are out of range"),
                 .where = "-np, --parallel",
                 .why = cat("needed: 1 to ", kMaxSequences),
                 .fix = cat("--parallel 1 to ", kMaxSequences)};
  }
  return {};
}

bool Plan::complete() const {
  return std::all_of(operations.begin(), operations.end(),
                     [](const Operation& each) { return each.choice.chosen.has_value(); });
}

Result<Plan> make_plan(const model::ModelConfig& config, const model::CheckedTensors& tensors,
                       const PlanRequest& request, const device::Machine& machine) {
  return Planner(config, tensors, request).plan(machine);
}

Status check_runnable(const Plan& plan, const PlanRequest& request) {
  const auto is_attention = [](const Operation& each) {
    return each.name() == kAttentionPrefill || each.name() == kAttentionDecode;
  };
  // Attention first: what it refuses is what people chose, and its rules say most.
  std::vector<const Operation*> order;
  for (const bool wanted : {true, false}) {
    for (const Operation& each : plan.operations) {
      if (is_attention(each) == wanted) order.push_back(&each);
    }
  }
  for (const Operation* operation : order) {
    const Operation& each = *operation;
    if (each.choice.chosen) continue;
    const bool attention = is_attention(each);
    const bool loops = request.kernels != "auto" && each.name() == kNorms;
    return refused(each.choice, each.asked,
                   attention ? std::string_view(request.attention_backend)
                   : loops   ? std::string_view(request.kernels)
                             : std::string_view());
  }
  const bool fits = plan.target.on_host() ? !anonymous_does_not_fit(plan) : plan.memory.fits();
  if (fits) return {};
  std::string why;
  for (const MemoryUse& each : plan.memory.devices) {
    if (each.fits()) continue;
    why += cat(why.empty() ? "" : "\n", each.device, ": needed ", human_bytes(each.total()),
               " (weights ", human_bytes(each.weights), ", cache ", human_bytes(each.cache), " at ",
               plan.memory.bytes_per_token, " bytes a token, workspace ",
               human_bytes(each.workspace), "); usable ", human_bytes(*each.usable));
  }
  std::string fix;
  for (const Remedy& each : plan.memory.remedies) {
    if (!each.enough || each.option.empty()) continue;
    fix += cat(fix.empty() ? "" : ", or ", each.option);
  }
  return Error{.code = Code::kResource,
               .what = cat("a context of ", plan.context, " tokens does not fit in memory"),
               .why = std::move(why),
               .fix = fix.empty() ? "a smaller model, or a machine with more memory" : fix};
}

}  // namespace topknot::plan
