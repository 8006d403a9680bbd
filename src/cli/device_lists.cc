#include "cli/device_lists.h"

#include "base/strings.h"
#include "cli/plan_report.h"
#include "cli/text.h"
#include "plan/lists.h"
#include "plan/operations.h"

namespace topknot::cli {
namespace {

using capability::Fact;
using capability::Facts;
using capability::ListEntry;
using capability::Rule;
using capability::Standing;
using Fate = Standing::Fate;

std::string_view fate_name(Fate fate) {
  switch (fate) {
    case Fate::kCanWin: return "can_win";
    case Fate::kRefused: return "refused";
    case Fate::kAbsent: return "absent";
    case Fate::kShadowed: return "shadowed";
  }
  return "";
}

// What else it depends on, once the device is known.
Json open_rules(const ListEntry& entry, const Facts& device) {
  Json out = Json::array();
  for (const Rule& rule : entry.rules) {
    if (device[rule.fact]) continue;
    out.push_back({{"fact", capability::fact_name(rule.fact)},
                   {"accepts", capability::accepts_string(rule.fact, rule.accepts)},
                   {"because", rule.because},
                   {"remedy", rule.remedy}});
  }
  return out;
}

Json list_json(const plan::OperationList& list, const Facts& device) {
  const auto standings = capability::standings(list.entries, device);
  Json entries = Json::array();
  for (size_t i = 0; i < standings.size(); ++i) {
    const Standing& each = standings[i];
    entries.push_back({{"name", each.name},
                       {"description", list.entries[i].description},
                       {"standing", fate_name(each.fate)},
                       {"shadowed_by", each.by.empty() ? Json() : Json(each.by)},
                       {"refusals", refusals_json(each.refusals)},
                       {"open_rules", open_rules(list.entries[i], device)}});
  }
  return {{"operations", list.operations}, {"entries", std::move(entries)}};
}

std::string text(const Json& value) { return value.get<std::string>(); }

std::string entry_text(size_t place, const Json& entry) {
  const std::string standing = text(entry["standing"]);
  std::string out = cat(place, ". ", text(entry["name"]), ": ");
  if (standing == "can_win") {
    out += text(entry["description"]);
  } else if (standing == "shadowed") {
    out += cat("never, unless it is named: ", text(entry["shadowed_by"]),
               " is tried before it and takes everything that it takes");
  } else {
    out += "never";
    for (const Json& each : entry["refusals"]) {
      out += cat("; ", text(each["what"]), ": needs ", text(each["needed"]), ", found ",
                 text(each["found"]), " (", text(each["because"]), ")");
    }
  }
  out = line(2, out);
  if (standing != "can_win") return out;
  for (const Json& rule : entry["open_rules"]) {
    out += line(5, cat("if ", text(rule["fact"]), " is ", text(rule["accepts"]), " (",
                       text(rule["because"]), ")"));
  }
  return out;
}

}  // namespace

Json device_lists_json(const plan::Target& target, const attention::BackendList& backends) {
  const Facts device = plan::target_facts(target);
  Json lists = Json::array();
  for (const plan::OperationList& each : plan::operation_lists(backends)) {
    lists.push_back(list_json(each, device));
  }
  return {{"device",
           {{"device", target.device_name(0)},
            {"name", json_text(target.device.name)},
            {"facts", device.to_string()}}},
          {"lists", std::move(lists)}};
}

std::string device_lists_text(const Json& json) {
  const Json& device = json["device"];
  std::string out = line(0, cat(text(device["device"]), ": ", printable(text(device["name"]))));
  out += line(2, text(device["facts"]));
  for (const Json& list : json["lists"]) {
    out += line(0, cat(text(list["operations"]), ", in the order tried"));
    size_t place = 0;
    for (const Json& entry : list["entries"]) out += entry_text(++place, entry);
  }
  return out;
}

}  // namespace topknot::cli
