// Which entries of an ordered list can be chosen on a device at all, whatever is asked: an entry
// that nothing can reach is a mistake in the list or in its rules.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capability/rules.h"

namespace topknot::capability {

struct ListEntry {
  std::string_view name;
  std::span<const Rule> rules;
  std::vector<Refusal> absent = {};  // why it runs nowhere: not written yet, or not built
  std::string_view description = {};
  // Limits that are code, asked beside the rules; may be empty.
  std::function<std::vector<Refusal>(const Facts& asked)> limits = {};
};

struct Standing {
  enum class Fate : uint8_t {
    kCanWin,
    kRefused,   // `refusals`: rules that this device breaks
    kAbsent,    // `refusals`: its place is kept, but this program does not have it
    kShadowed,  // `by` is tried first and takes everything that this entry takes
  };
  std::string name;
  Fate fate = Fate::kCanWin;
  std::vector<Refusal> refusals;
  std::string by;
};

ListEntry entry_of(const Implementation& implementation);

// `device` states the facts of a device and nothing else; facts it leaves out may have any value.
// An entry is called shadowed only where that is certain: never by one that is absent, or that has
// limits in code. Of what these refuse, that counts which is about a fact of the device.
std::vector<Standing> standings(std::span<const ListEntry> entries, const Facts& device);

// The entries that can win on none of `devices`, each with its standing on one of them: where it is
// shadowed, if it is anywhere, or else where it is absent and not refused.
std::vector<Standing> dead_entries(std::span<const ListEntry> entries,
                                   std::span<const Facts> devices);

}  // namespace topknot::capability
