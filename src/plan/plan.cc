#include "plan/plan.h"

#include <algorithm>

#include "attention/registry.h"
#include "base/checked_math.h"
#include "base/strings.h"
#include "base/try.h"
#include "ops/cpu/kernels.h"

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

Result<std::string> resolve_kernels(const std::string& name) {
  if (name == "auto") return std::string(ops::available_kernels().front()->name);
  if (name == "reference" || ops::find_kernels(name) != nullptr) return name;
  std::string can_run = "reference";
  for (const ops::Kernels* kernels : ops::available_kernels())
    can_run = cat(kernels->name, ", ", can_run);
  const auto built = ops::built_kernels();
  const bool known = std::find(built.begin(), built.end(), name) != built.end();
  return Error{
      .code = known ? Code::kUnsupported : Code::kInvalidArgument,
      .what = cat("--kernels '", printable(name), known ? "' cannot run here" : "' is not known"),
      .why = known ? "this processor lacks the instruction set" : "",
      .fix = cat("auto, ", can_run)};
}

kvcache::CacheShape cache_shape(const model::ModelConfig& config, bool sparse, KvFormat format) {
  kvcache::CacheShape shape;
  shape.format = format;
  shape.latent_width = config.latent_width();
  shape.index_width = sparse ? config.indexer->head_dim : 0;
  shape.layer_has_index.resize(static_cast<size_t>(config.layers));
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    shape.layer_has_index[static_cast<size_t>(layer)] = sparse && config.has_own_indexer(layer);
  }
  return shape;
}

int64_t whole_pages(int64_t tokens) {
  return std::max<int64_t>(tokens / kvcache::kPageTokens, 1) * kvcache::kPageTokens;
}

Result<int64_t> choose_context(const model::ModelConfig& config, const PlanRequest& request,
                               const kvcache::CacheShape& shape, const device::HostFacts& host) {
  const int64_t per_token = shape.bytes_per_token();
  const auto available = static_cast<int64_t>(host.memory.available_bytes);
  // Weights are mapped, not copied, but they need memory to run at speed.
  const int64_t beside_weights =
      std::max<int64_t>(available - static_cast<int64_t>(request.weight_bytes), 0);
  const int64_t most = std::min(config.context_length, kvcache::kMaxSlots);
  if (request.context == 0) {
    const auto share = static_cast<int64_t>(kCacheShare * static_cast<double>(beside_weights));
    return std::min(most, whole_pages(share / per_token));
  }
  if (request.context < 1 || request.context > most) {
    return Error{.code = Code::kOutOfRange,
                 .what = cat("a context of ", request.context, " tokens is out of range"),
                 .why = cat("the model was trained for ", config.context_length, " (",
                            config.architecture, ".context_length)"),
                 .fix = cat("-c 1 to ", most, "; to go beyond, --override-kv ", config.architecture,
                            ".context_length=int:N, and expect poor text")};
  }
  int64_t bytes = 0;
  const bool overflow = mul_overflows(request.context, per_token, &bytes);
  if (host.memory.total_bytes > 0 && (overflow || bytes > available)) {
    return Error{.code = Code::kResource,
                 .what = cat("a context of ", request.context, " tokens does not fit in memory"),
                 .why = cat("needed: ", human_bytes(static_cast<uint64_t>(bytes)),
                            " for cache rows (", per_token, " bytes a token); available: ",
                            human_bytes(host.memory.available_bytes)),
                 .fix = cat("-c ", whole_pages(available / per_token), " or less",
                            shape.format == KvFormat::kF32 ? ", or --kv-cache-dtype bf16" : "")};
  }
  return request.context;
}

Status check_ranges(const PlanRequest& request) {
  if (request.threads < 0 || request.threads > kMaxThreads) {
    return Error{.code = Code::kOutOfRange,
                 .what = cat(request.threads, " threads are out of range"),
                 .fix = cat("-t 1 to ", kMaxThreads, ", or 0 for every core")};
  }
  if (request.ubatch < 1 || request.ubatch > kMaxUbatch) {
    return Error{.code = Code::kOutOfRange,
                 .what = cat("a step of ", request.ubatch, " tokens is out of range"),
                 .fix = cat("--ubatch-size 1 to ", kMaxUbatch)};
  }
  return {};
}

}  // namespace

Facts attention_facts(const model::ModelConfig& config, bool sparse, KvFormat format) {
  Facts facts;
  facts.set(Fact::kDevice, DeviceKind::kCpu)
      .set(Fact::kSelection, sparse ? Selection::kSparse : Selection::kDense)
      .set(Fact::kHeads, config.heads)
      .set(Fact::kKvLoraRank, config.kv_lora_rank)
      .set(Fact::kQkRopeHeadDim, config.qk_rope_head_dim)
      .set(Fact::kKvFormat, format)
      .set(Fact::kPageTokens, kvcache::kPageTokens);
  if (sparse) {
    facts.set(Fact::kTopk, config.indexer->topk)
        .set(Fact::kIndexHeads, config.indexer->heads)
        .set(Fact::kIndexHeadDim, config.indexer->head_dim);
  }
  return facts;
}

Result<Plan> make_plan(const model::ModelConfig& config, const PlanRequest& request,
                       const device::HostFacts& host) {
  Plan plan;
  TOPKNOT_CHECK_OK(check_ranges(request));
  TOPKNOT_TRY(plan.dtype, resolve_dtype(request.dtype));
  TOPKNOT_TRY(const KvFormat format, resolve_kv_format(request.kv_cache_dtype));
  TOPKNOT_TRY(plan.kernels, resolve_kernels(request.kernels));
  plan.sparse = config.indexer.has_value() && !request.dense;
  plan.attention_reason = config.sparse_reason;
  if (config.indexer && request.dense) {
    plan.attention_reason = cat("dense was asked for; ", config.sparse_reason);
    plan.warnings.push_back(cat("dense attention on a model trained for sparse attention (",
                                config.sparse_reason, "): beyond ", config.indexer->topk,
                                " tokens it reads every key, and its text may differ"));
  } else if (!config.indexer && config.architecture == "glm-dsa") {
    plan.warnings.push_back(cat("attention is dense: ", config.sparse_reason));
  }
  const Facts facts = attention_facts(config, plan.sparse, format);
  plan.attention = attention::select_backend(facts, request.attention_backend);
  if (!plan.attention.chosen) return refused(plan.attention, facts, request.attention_backend);
  plan.cache = cache_shape(config, plan.sparse, format);
  TOPKNOT_TRY(plan.context, choose_context(config, request, plan.cache, host));
  plan.ubatch = std::min(request.ubatch, plan.context);
  plan.threads = request.threads > 0 ? request.threads : std::clamp(host.cores, 1, kMaxThreads);
  plan.cache_bytes = static_cast<uint64_t>(plan.cache.bytes_per_token() * plan.context);
  return plan;
}

}  // namespace topknot::plan
