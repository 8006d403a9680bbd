#include "capability/standing.h"

#include <algorithm>

namespace topknot::capability {
namespace {

std::vector<Rule> rules_on(const Facts& device, std::span<const Rule> rules, bool stated) {
  std::vector<Rule> out;
  for (const Rule& rule : rules) {
    if (device[rule.fact].has_value() == stated) out.push_back(rule);
  }
  return out;
}

// What code refuses when nothing but the device is known, without what it says of unknown facts.
std::vector<Refusal> limits_on(const Facts& device, const ListEntry& entry) {
  std::vector<Refusal> out;
  if (!entry.limits) return out;
  for (Refusal& each : entry.limits(device)) {
    const auto fact = fact_from_name(each.what);
    if (fact && device[*fact]) out.push_back(std::move(each));
  }
  return out;
}

// Whatever `later` takes on this device, `earlier` takes too.
bool covers(const ListEntry& earlier, const ListEntry& later, const Facts& device) {
  if (earlier.limits) return false;
  for (const Rule& wide : rules_on(device, earlier.rules, false)) {
    const bool met = std::any_of(later.rules.begin(), later.rules.end(), [&](const Rule& narrow) {
      return narrow.fact == wide.fact && implies(narrow.accepts, wide.accepts);
    });
    if (!met) return false;
  }
  return true;
}

// Of two reasons why an entry cannot win, the one that tells more: the other may be another
// device's.
int telling(Standing::Fate fate) {
  switch (fate) {
    case Standing::Fate::kShadowed: return 2;
    case Standing::Fate::kAbsent: return 1;
    case Standing::Fate::kRefused:
    case Standing::Fate::kCanWin: break;
  }
  return 0;
}

}  // namespace

ListEntry entry_of(const Implementation& implementation) {
  ListEntry entry{.name = implementation.name,
                  .rules = implementation.rules,
                  .description = implementation.description};
  if (implementation.missing != nullptr)
    entry.absent.push_back(refusal_of(*implementation.missing));
  return entry;
}

std::vector<Standing> standings(std::span<const ListEntry> entries, const Facts& device) {
  std::vector<Standing> out;
  for (size_t i = 0; i < entries.size(); ++i) {
    Standing standing{.name = std::string(entries[i].name)};
    standing.refusals = refusals(rules_on(device, entries[i].rules, true), device);
    for (Refusal& each : limits_on(device, entries[i])) {
      standing.refusals.push_back(std::move(each));
    }
    if (!standing.refusals.empty()) {
      standing.fate = Standing::Fate::kRefused;
    } else if (!entries[i].absent.empty()) {
      standing.fate = Standing::Fate::kAbsent;
      standing.refusals = entries[i].absent;
    }
    for (size_t j = 0; j < i && standing.fate == Standing::Fate::kCanWin; ++j) {
      if (!out[j].refusals.empty()) continue;
      if (!covers(entries[j], entries[i], device)) continue;
      standing.fate = Standing::Fate::kShadowed;
      standing.by = out[j].name;
    }
    out.push_back(std::move(standing));
  }
  return out;
}

std::vector<Standing> dead_entries(std::span<const ListEntry> entries,
                                   std::span<const Facts> devices) {
  std::vector<Standing> worst(entries.size());
  std::vector<bool> wins(entries.size(), false);
  for (const Facts& device : devices) {
    const auto here = standings(entries, device);
    for (size_t i = 0; i < here.size(); ++i) {
      if (here[i].fate == Standing::Fate::kCanWin) wins[i] = true;
      if (telling(here[i].fate) >= telling(worst[i].fate)) worst[i] = here[i];
    }
  }
  std::vector<Standing> dead;
  for (size_t i = 0; i < entries.size() && !devices.empty(); ++i) {
    if (!wins[i]) dead.push_back(std::move(worst[i]));
  }
  return dead;
}

}  // namespace topknot::capability
