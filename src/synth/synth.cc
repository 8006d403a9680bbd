#include "synth/synth.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/checked_math.h"
#include "base/progress.h"
#include "base/strings.h"
#include "base/thread_pool.h"
#include "base/try.h"
#include "synth/metadata.h"

namespace topknot::synth {
namespace {

using tensor::DType;

constexpr uint64_t kWorkBytes = 256 << 10;  // what one thread makes at once

Error bad_number(const char* what, const std::string& found, const std::string& needed) {
  return Error{.code = Code::kInvalidArgument,
               .what = what,
               .where = {},
               .why = cat("found ", found, "; needed: ", needed),
               .fix = "give a number in that range"};
}

struct Plan {
  gguf::MetadataEncoder metadata;
  std::vector<TensorPlan> tensors;
  std::vector<gguf::TensorSpec> specs;
};

Result<Plan> make_plan(const Request& request) {
  TOPKNOT_CHECK_OK(check_shape(request.shape));
  if (!(request.gain >= kMinGain && request.gain <= kMaxGain)) {
    return bad_number("the gain of the weights is out of range", cat(request.gain),
                      cat(kMinGain, " to ", kMaxGain));
  }
  if (request.threads < 1 || request.threads > kMaxThreads) {
    return bad_number("the number of threads is out of range", cat(request.threads),
                      cat("1 to ", kMaxThreads));
  }
  if (request.types.size() > kMaxTypeRules) {
    return bad_number("there are too many rules for types", cat(request.types.size()),
                      cat("at most ", kMaxTypeRules));
  }
  std::vector<TypeRule> rules = {{".*", DType::kF16}, {"ffn_gate_inp|indexer[.]proj", DType::kF32}};
  rules.insert(rules.end(), request.types.begin(), request.types.end());
  Plan plan;
  plan.tensors = plan_tensors(request.shape, request.gain);
  choose_types(rules, &plan.tensors);
  plan.metadata = make_metadata(request.shape, plan.tensors);
  for (const TensorPlan& tensor : plan.tensors) plan.specs.push_back(tensor.spec);
  return plan;
}

Summary summarise(const Plan& plan, std::vector<gguf::PlannedPart> parts) {
  Summary out;
  out.parts = std::move(parts);
  for (const gguf::PlannedPart& part : out.parts) out.bytes += part.bytes;
  out.tensors = plan.specs.size();
  for (const gguf::TensorSpec& spec : plan.specs) {
    out.parameters += gguf::tensor_elements(spec);
    out.type_bytes[spec.type] += gguf::tensor_bytes(spec);
    ++out.type_tensors[spec.type];
  }
  return out;
}

// Makes the pieces the writer asks for, cut into work for all threads.
class Maker {
 public:
  Maker(const Request& request, const Plan& plan)
      : request_(request),
        plan_(plan),
        pool_(request.threads),
        progress_("writing", "MB", total_bytes(plan) / 1'000'000, request.quiet) {}

  Status fill(size_t index, uint64_t offset, std::span<std::byte> out) {
    if (request_.cancel != nullptr && request_.cancel->load(std::memory_order_relaxed)) {
      return Error{.code = Code::kCancelled,
                   .what = "the model was not written",
                   .where = request_.path,
                   .why = "it was cancelled",
                   .fix = "run the command again"};
    }
    const TensorPlan& tensor = plan_.tensors[index];
    const uint64_t block = tensor::dtype_info(tensor.spec.type).block_bytes;
    const uint64_t key = tensor_key(request_.seed, tensor.spec.name);
    const uint64_t work = kWorkBytes / block * block;
    const auto items = static_cast<int64_t>(ceil_div<uint64_t>(out.size(), work));
    pool_.parallel_for(items, [&](int64_t item, int /*thread*/) {
      const uint64_t begin = static_cast<uint64_t>(item) * work;
      const uint64_t bytes = std::min<uint64_t>(work, out.size() - begin);
      fill_blocks(tensor.spec.type, tensor.values, key, (offset + begin) / block,
                  out.subspan(begin, bytes));
    });
    done_ += out.size();
    progress_.update(done_ / 1'000'000);
    return {};
  }

 private:
  static uint64_t total_bytes(const Plan& plan) {
    uint64_t total = 0;
    for (const gguf::TensorSpec& spec : plan.specs) total += gguf::tensor_bytes(spec);
    return total;
  }

  const Request& request_;
  const Plan& plan_;
  ThreadPool pool_;
  Progress progress_;
  uint64_t done_ = 0;
};

}  // namespace

Result<Summary> make_model(const Request& request) {
  TOPKNOT_TRY(const Plan plan, make_plan(request));
  Maker maker(request, plan);
  const gguf::TensorSource source = [&](size_t index, uint64_t offset, std::span<std::byte> out) {
    return maker.fill(index, offset, out);
  };
  TOPKNOT_TRY(auto parts,
              gguf::write_model(request.path, plan.metadata, plan.specs, source, request.output));
  return summarise(plan, std::move(parts));
}

Result<Summary> plan_model(const Request& request) {
  TOPKNOT_TRY(const Plan plan, make_plan(request));
  TOPKNOT_TRY(auto parts,
              gguf::plan_parts(request.path, plan.metadata, plan.specs, request.output.split));
  return summarise(plan, std::move(parts));
}

Result<uint64_t> parse_size(std::string_view text) {
  constexpr struct {
    std::string_view suffix;
    double factor;
  } kUnits[] = {{"", 1},
                {"K", 1e3},
                {"M", 1e6},
                {"G", 1e9},
                {"T", 1e12},
                {"KiB", 1024.0},
                {"MiB", 1024.0 * 1024},
                {"GiB", 1024.0 * 1024 * 1024},
                {"TiB", 1024.0 * 1024 * 1024 * 1024}};
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view suffix = text.substr(static_cast<size_t>(end - text.data()));
  for (const auto& unit : kUnits) {
    const double bytes = std::floor(number * unit.factor);
    if (error == std::errc() && suffix == unit.suffix && bytes >= 1 && bytes < 9e18) {
      return static_cast<uint64_t>(bytes);
    }
  }
  return Error{.code = Code::kInvalidArgument,
               .what = cat("'", printable(text), "' is no size"),
               .where = {},
               .why = "needed: a number above 0, with K, M, G, T, KiB, MiB, GiB or TiB behind it",
               .fix = "write 48G, or 500MiB"};
}

}  // namespace topknot::synth
