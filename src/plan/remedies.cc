// What to change when a plan does not fit, cheapest first.
#include <algorithm>
#include <cmath>

#include "base/checked_math.h"
#include "base/strings.h"
#include "plan/memory.h"
#include "plan/placement.h"

namespace topknot::plan {
namespace {

using model::CheckedTensors;
using model::ModelConfig;
using model::Use;

constexpr int kMostRanksTried = 64;

class Finder {
 public:
  Finder(const ModelConfig& config, const CheckedTensors& tensors, const MemoryRequest& request,
         const Target& target)
      : config_(config),
        tensors_(tensors),
        request_(request),
        target_(target),
        now_(measure_memory(config, tensors, request, target)) {
    for (const model::UsedTensor& each : tensors.tensors) {
      elements_ += each.info->elements();
      bytes_ += each.info->bytes;
      if (each.use == Use::kExperts) expert_bytes_ += each.info->bytes;
    }
  }

  std::vector<Remedy> find(const std::vector<kvcache::KvFormat>& row_formats) {
    smaller_context();
    fewer_sequences();
    for (const kvcache::KvFormat format : row_formats) smaller_rows(format);
    fewer_bits();
    if (target_.on_host()) {
      more_memory();
    } else {
      more_ranks();
      experts_in_host_memory();
    }
    return std::move(out_);
  }

 private:
  uint64_t cache_bytes(int64_t tokens, int64_t sequences) const {
    return saturating_mul(
        saturating_mul(static_cast<uint64_t>(tokens), static_cast<uint64_t>(sequences)),
        static_cast<uint64_t>(now_.bytes_per_token));
  }

  bool fits(const MemoryRequest& request, const Target& target) const {
    return measure_memory(config_, tensors_, request, target).fits();
  }

  void smaller_context() {
    const int64_t largest = largest_context(config_, tensors_, request_, target_, request_.context);
    if (largest < 1 || largest >= request_.context) return;
    const uint64_t freed = cache_bytes(request_.context - largest, request_.sequences);
    out_.push_back(
        {"a smaller context", cat("-c ", largest),
         cat(human_bytes(freed), " less of cache rows (", now_.bytes_per_token, " bytes a token)"),
         true});
  }

  void fewer_sequences() {
    for (int64_t n = request_.sequences - 1; n >= 1; n = n > 64 ? n / 2 : n - 1) {
      MemoryRequest request = request_;
      request.sequences = n;
      if (!fits(request, target_)) continue;
      out_.push_back({"fewer sequences", cat("-np ", n),
                      cat(human_bytes(cache_bytes(request_.context, request_.sequences - n)),
                          " less of cache rows"),
                      true});
      return;
    }
  }

  void smaller_rows(kvcache::KvFormat format) {
    MemoryRequest request = request_;
    request.cache.format = format;
    const int64_t bytes = request.cache.bytes_per_token();
    const std::string_view name = capability::kv_format_name(format);
    out_.push_back({cat(name, " cache rows"), cat("-ctk ", name),
                    cat(bytes, " bytes a token instead of ", now_.bytes_per_token),
                    fits(request, target_)});
  }

  // What weights may take at most, on the device where that is least of what they take now.
  void fewer_bits() {
    double factor = 1;
    for (const MemoryUse& each : now_.devices) {
      if (!each.usable || each.weights == 0) continue;
      const uint64_t rest = each.total() - each.weights;
      const double room = rest < *each.usable ? static_cast<double>(*each.usable - rest) : 0;
      factor = std::min(factor, room / static_cast<double>(each.weights));
    }
    if (elements_ == 0 || factor >= 1 || factor <= 0) return;
    const double bits = 8 * static_cast<double>(bytes_) / static_cast<double>(elements_);
    constexpr double kFewestBits = 1.6;  // published files of 1-bit types have a little more
    if (bits * factor < kFewestBits) return;
    out_.push_back(
        {"fewer bits", "",
         fmt::format("a file of at most {} ({:.2f} bits a weight); this one has {} "
                     "({:.2f})",
                     human_bytes(static_cast<uint64_t>(factor * static_cast<double>(bytes_))),
                     bits * factor, human_bytes(bytes_), bits),
         true});
  }

  void more_memory() {
    const MemoryUse& host = now_.devices.back();
    if (host.fits()) return;
    out_.push_back({"more memory", "",
                    cat("a machine with ", human_bytes(host.total()), " usable; this one has ",
                        human_bytes(*host.usable)),
                    true});
  }

  void more_ranks() {
    const SplitUnits units = split_units(config_, tensors_);
    for (int ranks = target_.ranks + 1; ranks <= kMostRanksTried; ++ranks) {
      if (!check_split(config_, units, ranks)) return;
      Target target = target_;
      target.ranks = ranks;
      if (!fits(request_, target)) continue;
      const MemoryPlan plan = measure_memory(config_, tensors_, request_, target);
      out_.push_back({"more devices", cat("-tp ", ranks),
                      cat(human_bytes(plan.devices.front().total()), " on the fullest instead of ",
                          human_bytes(now_.devices.front().total())),
                      true});
      return;
    }
  }

  void experts_in_host_memory() {
    if (expert_bytes_ == 0) return;
    const uint64_t freed = expert_bytes_ / static_cast<uint64_t>(target_.ranks);
    const MemoryUse& first = now_.devices.front();
    const bool device_fits = !first.usable || first.total() - freed <= *first.usable;
    const MemoryUse& host = now_.devices.back();
    std::string detail =
        cat(human_bytes(freed), " less on each device; the host needs ",
            human_bytes(host.total() + expert_bytes_), " and has ",
            host.usable ? human_bytes(*host.usable) : std::string("an unknown amount"));
    const bool host_fits = host.usable && host.total() + expert_bytes_ <= *host.usable;
    out_.push_back({"experts in host memory", "", cat(detail, "; not in this version"),
                    device_fits && host_fits});
  }

  const ModelConfig& config_;
  const CheckedTensors& tensors_;
  const MemoryRequest& request_;
  const Target& target_;
  MemoryPlan now_;
  uint64_t elements_ = 0, bytes_ = 0, expert_bytes_ = 0;
  std::vector<Remedy> out_;
};

}  // namespace

std::vector<Remedy> find_remedies(const ModelConfig& config, const CheckedTensors& tensors,
                                  const MemoryRequest& request, const Target& target,
                                  const std::vector<kvcache::KvFormat>& row_formats) {
  return Finder(config, tensors, request, target).find(row_formats);
}

}  // namespace topknot::plan
