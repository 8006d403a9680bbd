#include "capability/rules.h"

#include <algorithm>

#include "base/strings.h"

namespace topknot::capability {

bool holds(const Accepts& accepts, int64_t value) {
  const int64_t limit = accepts.values[0];
  switch (accepts.kind) {
    case Accepts::Kind::kExactly: return value == limit;
    case Accepts::Kind::kAtLeast: return value >= limit;
    case Accepts::Kind::kAtMost: return value <= limit;
    case Accepts::Kind::kBetween: return value >= limit && value <= accepts.values[1];
    case Accepts::Kind::kMultipleOf: return value % limit == 0;
    case Accepts::Kind::kOneOf:
      return std::find(accepts.values.begin(), accepts.values.begin() + accepts.count, value) !=
             accepts.values.begin() + accepts.count;
  }
  return false;
}

bool implies(const Accepts& narrow, const Accepts& wide) {
  using Kind = Accepts::Kind;
  const int64_t first = narrow.values[0];
  switch (narrow.kind) {
    case Kind::kExactly:
    case Kind::kOneOf:
      return std::all_of(narrow.values.begin(), narrow.values.begin() + narrow.count,
                         [&](int64_t value) { return holds(wide, value); });
    case Kind::kAtLeast: return wide.kind == Kind::kAtLeast && wide.values[0] <= first;
    case Kind::kAtMost: return wide.kind == Kind::kAtMost && wide.values[0] >= first;
    case Kind::kBetween:
      return (wide.kind == Kind::kBetween || wide.kind == Kind::kAtLeast ||
              wide.kind == Kind::kAtMost) &&
             holds(wide, first) && holds(wide, narrow.values[1]);
    case Kind::kMultipleOf: return wide.kind == Kind::kMultipleOf && first % wide.values[0] == 0;
  }
  return false;
}

std::string accepts_string(Fact fact, const Accepts& accepts) {
  const std::string first = fact_value(fact, accepts.values[0]);
  switch (accepts.kind) {
    case Accepts::Kind::kExactly: return cat("exactly ", first);
    case Accepts::Kind::kAtLeast: return cat("at least ", first);
    case Accepts::Kind::kAtMost: return cat("at most ", first);
    case Accepts::Kind::kBetween:
      return cat("from ", first, " to ", fact_value(fact, accepts.values[1]));
    case Accepts::Kind::kMultipleOf: return cat("a multiple of ", first);
    case Accepts::Kind::kOneOf: break;
  }
  std::string out = "one of ";
  for (size_t i = 0; i < accepts.count; ++i) {
    if (i != 0) out += ", ";
    out += fact_value(fact, accepts.values[i]);
  }
  return out;
}

std::vector<Refusal> refusals(std::span<const Rule> rules, const Facts& asked) {
  std::vector<Refusal> out;
  for (const Rule& rule : rules) {
    const auto value = asked[rule.fact];
    if (value && holds(rule.accepts, *value)) continue;
    out.push_back({.what = std::string(fact_name(rule.fact)),
                   .needed = accepts_string(rule.fact, rule.accepts),
                   .found = value ? fact_value(rule.fact, *value) : "unknown",
                   .because = rule.because,
                   .remedy = rule.remedy});
  }
  return out;
}

Refusal refusal_of(const Missing& missing) {
  return {.what = missing.what,
          .needed = missing.needed,
          .found = missing.found,
          .because = missing.because,
          .remedy = missing.remedy};
}

Candidate judge(const Implementation& implementation, const Facts& asked) {
  Candidate candidate{implementation.name, refusals(implementation.rules, asked)};
  if (implementation.missing != nullptr) {
    candidate.refusals.push_back(refusal_of(*implementation.missing));
  }
  return candidate;
}

Choice choose(std::string operation, std::span<const Implementation> implementations,
              const Facts& asked, std::string_view forced) {
  std::vector<Candidate> candidates;
  for (const Implementation& each : implementations) candidates.push_back(judge(each, asked));
  return choose(std::move(operation), std::move(candidates), forced);
}

Choice choose(std::string operation, std::vector<Candidate> candidates, std::string_view forced) {
  Choice choice{
      .operation = std::move(operation), .chosen = {}, .candidates = std::move(candidates)};
  for (size_t i = 0; i < choice.candidates.size(); ++i) {
    const Candidate& candidate = choice.candidates[i];
    if (!forced.empty() && candidate.name != forced) continue;
    if (!candidate.refusals.empty()) continue;
    choice.chosen = i;
    break;
  }
  return choice;
}

std::string explain(const Choice& choice) {
  std::string out;
  size_t width = 15;
  for (const Candidate& candidate : choice.candidates)
    width = std::max(width, candidate.name.size());
  for (const Candidate& candidate : choice.candidates) {
    if (candidate.refusals.empty()) {
      out += fmt::format("{:<{}} can run\n", candidate.name, width);
      continue;
    }
    std::string name = candidate.name;
    for (const Refusal& refusal : candidate.refusals) {
      out += fmt::format("{:<{}} {}: needs {}, found {}: {}", name, width, refusal.what,
                         refusal.needed, refusal.found, refusal.because);
      if (!refusal.remedy.empty()) out += cat("; try ", refusal.remedy);
      out += '\n';
      name.clear();
    }
  }
  if (!out.empty()) out.pop_back();
  return out;
}

Error refused(const Choice& choice, const Facts& asked, std::string_view forced) {
  std::vector<std::string> names;
  for (const Candidate& candidate : choice.candidates) names.push_back(candidate.name);
  const bool known = std::find(names.begin(), names.end(), forced) != names.end();
  if (!forced.empty() && !known) {
    std::string fix = "names are ";
    for (const std::string& name : names) fix += cat(&name == names.data() ? "" : ", ", name);
    const auto near = nearest(forced, names, 1);
    if (!near.empty()) fix = cat("did you mean '", near.front(), "'? ", fix);
    return Error{.code = Code::kNotFound,
                 .what = cat("no implementation of ", choice.operation, " is named '",
                             printable(forced), "'"),
                 .fix = std::move(fix)};
  }
  return Error{
      .code = Code::kUnsupported,
      .what = forced.empty() ? cat("nothing can run ", choice.operation, " as asked")
                             : cat("'", forced, "' cannot run ", choice.operation, " as asked"),
      .where = asked.to_string(),
      .why = explain(choice),
      .fix = forced.empty() ? "change what a line above says to try"
                            : "name another one, or leave the name out to let it be chosen"};
}

}  // namespace topknot::capability
