// The tables of `topknot plan`, at most 100 columns wide.
#include <algorithm>

#include "base/strings.h"
#include "cli/plan_report.h"
#include "cli/text.h"

namespace topknot::cli {
namespace {

std::string thousands(double value) {
  constexpr const char* kUnits[] = {"", "K", "M", "G", "T", "P"};
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) value /= 1000, ++unit;
  return unit == 0 ? fmt::format("{:.0f}", value) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string duration(const std::optional<double>& seconds) {
  if (!seconds) return "unknown";
  if (*seconds >= 100) return fmt::format("{:.0f} s", *seconds);
  if (*seconds >= 1) return fmt::format("{:.1f} s", *seconds);
  if (*seconds >= 1e-3) return fmt::format("{:.2f} ms", *seconds * 1e3);
  return fmt::format("{:.1f} us", *seconds * 1e6);
}

std::string bytes_or_unknown(const std::optional<uint64_t>& bytes) {
  return bytes ? human_bytes(*bytes) : "unknown";
}

std::string summary(const plan::Plan& plan, const PlannedModel& model) {
  std::string out = model_text(model) + machine_text(plan.target, model);
  out += line(0, cat("plan     context ", plan.context, " x ", plan.sequences,
                     plan.sequences == 1 ? " sequence" : " sequences", ", ",
                     plan.sparse ? cat("sparse attention top-", model.config.indexer->topk)
                                 : std::string("dense attention"),
                     ", activations ", capability::activation_name(plan.dtype), ", cache ",
                     capability::kv_format_name(plan.cache.format)));
  const bool complete = plan.complete();
  const bool fits = plan.memory.fits();
  out += line(0, cat("result   ", complete ? "complete" : "INCOMPLETE: some operations cannot run",
                     fits ? ", fits in memory" : ", DOES NOT FIT in memory"));
  return out;
}

// The refusals that keep an operation from running, in short: of the first candidate for this kind
// of device, since the others are for another.
std::string why_not(const plan::Operation& operation) {
  const auto device_refused = [](const capability::Candidate& each) {
    return std::any_of(each.refusals.begin(), each.refusals.end(),
                       [](const capability::Refusal& r) { return r.what == "device"; });
  };
  const auto& candidates = operation.choice.candidates;
  auto best = std::find_if_not(candidates.begin(), candidates.end(), device_refused);
  if (best == candidates.end()) best = candidates.begin();
  std::string out;
  for (const capability::Refusal& each : best->refusals) {
    out += cat(out.empty() ? "" : "; ", each.what, ": needs ", each.needed, ", found ", each.found);
  }
  return out;
}

std::string operations_table(const plan::Plan& plan) {
  std::string out = fmt::format("\n{:<24} {:<15} {}\n", "operation", "runs on", "why not");
  for (const plan::Operation& each : plan.operations) {
    const bool chosen = each.choice.chosen.has_value();
    std::string row =
        fmt::format("{:<24} {:<15} ", each.name(), chosen ? each.chosen() : "REFUSED");
    if (!chosen) row += wrapped(why_not(each), row.size(), 41);
    row.erase(row.find_last_not_of(' ') + 1);
    out += row + '\n';
  }
  if (!plan.complete()) out += "  --explain OPERATION says every reason and what to do\n";
  return out;
}

std::string memory_table(const plan::Plan& plan) {
  std::string out =
      fmt::format("\n{:<9}{:>11}{:>11}{:>11}{:>11}{:>11}{:>11}{:>11}\n", "memory", "weights",
                  "cache", "workspace", "staging", "reserve", "total", "usable");
  for (size_t i = 0; i < plan.memory.devices.size(); ++i) {
    const plan::MemoryUse& each = plan.memory.devices[i];
    out +=
        fmt::format("{:<9}{:>11}{:>11}{:>11}{:>11}{:>11}{:>11}{:>11}{}\n", each.device,
                    human_bytes(each.weights), human_bytes(each.cache), human_bytes(each.workspace),
                    human_bytes(each.staging), human_bytes(each.reserve), human_bytes(each.total()),
                    bytes_or_unknown(each.usable), each.fits() ? "" : "  TOO MUCH");
  }
  out += line(2, cat(plan.memory.bytes_per_token, " bytes of cache a token; the largest context ",
                     "that fits is ", plan.memory.largest_context));
  if (plan.memory.remedies.empty()) return out;
  out += "  what would make room, cheapest first:\n";
  for (const plan::Remedy& each : plan.memory.remedies) {
    out += line(4, cat(each.change, each.option.empty() ? "" : cat(" (", each.option, ")"), ": ",
                       each.detail, each.enough ? "" : "; not enough by itself"));
  }
  return out;
}

void add_price_rows(const std::vector<plan::TokenPrice>& prices, std::string_view phase,
                    std::string* out) {
  for (const plan::TokenPrice& each : prices) {
    *out += fmt::format(
        "{:<9}{:>11}{:>13}{:>13}{:>13}{:>16}\n", phase, each.depth, thousands(each.bytes),
        thousands(each.operations), duration(each.seconds),
        each.seconds && *each.seconds > 0 ? fmt::format("{:.1f}", 1 / *each.seconds) : "unknown");
  }
}

// Which operations a decoded token's time goes to, at the deepest depth.
std::string parts_table(const plan::Price& price) {
  std::vector<plan::OperationPrice> parts = price.decode.back().parts;
  const auto weight = [](const plan::OperationPrice& p) { return p.seconds.value_or(p.bytes); };
  std::stable_sort(parts.begin(), parts.end(),
                   [&](const auto& a, const auto& b) { return weight(a) > weight(b); });
  std::string out =
      fmt::format("\n{:<26}{:>13}{:>13}{:>13}\n", cat("decode at ", price.decode.back().depth),
                  "bytes", "operations", "at least");
  for (const plan::OperationPrice& each : parts) {
    out += fmt::format("{:<26}{:>13}{:>13}{:>13}\n", each.operation, thousands(each.bytes),
                       thousands(each.operations), duration(each.seconds));
  }
  return out;
}

std::string price_table(const plan::Price& price) {
  std::string out = fmt::format("\n{:<9}{:>11}{:>13}{:>13}{:>13}{:>16}\n", "a token", "depth",
                                "bytes", "operations", "at least", "tokens/s most");
  add_price_rows(price.decode, "decode", &out);
  add_price_rows(price.prefill, "prefill", &out);
  out += line(2, cat("load: ", human_bytes(price.load_bytes), ", ", duration(price.load_seconds)));
  if (!price.unknown.empty()) {
    out += line(2, fmt::format("unknown: {}", fmt::join(price.unknown, ", ")));
  }
  out += "  an estimate from stated peaks (docs/plan.md); nothing runs faster\n";
  return out + parts_table(price);
}

}  // namespace

std::string model_text(const PlannedModel& model) {
  return line(
      0, cat("model    ", model.config.architecture, " '", model.config.name, "', ",
             human_bytes(model.file_bytes), ", trained context ", model.config.context_length));
}

std::string machine_text(const plan::Target& target, const PlannedModel& model) {
  const std::string many = target.ranks > 1 ? cat(target.ranks, " x ") : std::string();
  const bool named = model.machine.name != target.device.name;
  return line(0, cat("machine  ", named ? cat(printable(model.machine.name), ": ") : std::string(),
                     many, printable(target.device.name), " (", target.device_name(0),
                     target.device.sm ? cat(", sm_", *target.device.sm) : std::string(), ")"));
}

std::string plan_text(const plan::Plan& plan, const PlannedModel& model) {
  std::string out = summary(plan, model);
  for (const std::string& each : plan.warnings) out += line(0, cat("warning: ", each));
  for (const std::string& each : plan.notes) out += line(0, cat("note: ", each));
  return out + operations_table(plan) + memory_table(plan) + price_table(plan.price);
}

std::string refusals_text(const std::vector<capability::Refusal>& refusals) {
  std::string out;
  for (const capability::Refusal& each : refusals) {
    out += line(5, cat(each.what, ": needs ", each.needed, ", found ", each.found));
    out += line(7, cat("because ", each.because));
    if (!each.remedy.empty()) out += line(7, cat("try ", each.remedy));
  }
  return out;
}

std::string choice_text(const capability::Choice& choice) {
  std::string out;
  for (size_t i = 0; i < choice.candidates.size(); ++i) {
    const capability::Candidate& each = choice.candidates[i];
    const bool here = choice.chosen == i;
    out += line(0, cat(i + 1, ". ", each.name,
                       here                    ? ": chosen"
                       : each.refusals.empty() ? ": could run; one before it was chosen"
                                               : ": refused"));
    out += refusals_text(each.refusals);
  }
  return out;
}

std::string explanation_text(const plan::Operation& operation) {
  const bool chosen = operation.choice.chosen.has_value();
  std::string out =
      line(0, cat(operation.name(), ": ", chosen ? operation.chosen() : "nothing can run it"));
  out += line(0, cat("asked: ", operation.asked.to_string()));
  return out + choice_text(operation.choice);
}

}  // namespace topknot::cli
