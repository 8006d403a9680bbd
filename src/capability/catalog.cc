#include "capability/catalog.h"

#include <algorithm>

#include "base/data_files.h"
#include "base/json_reader.h"
#include "base/mapped_file.h"
#include "base/strings.h"
#include "base/try.h"

namespace topknot::capability {
namespace {

constexpr std::string_view kFolder = "catalog";

std::vector<Rule> rules_of(const std::vector<CatalogRule>& owned) {
  std::vector<Rule> out;
  for (const CatalogRule& rule : owned) out.push_back(rule.rule());
  return out;
}

const CatalogOrder* order_for(const CatalogOperation& operation, const Facts& asked) {
  for (const CatalogOrder& order : operation.orders) {
    if (refusals(rules_of(order.when), asked).empty()) return &order;
  }
  return nullptr;
}

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += cat(out.empty() ? "" : ", ", name);
  return out;
}

Refusal not_in_the_order(const CatalogOperation& operation, const CatalogOrder* order,
                         const std::string& name) {
  Refusal refusal{.what = "order", .found = name, .remedy = "name it"};
  if (order == nullptr) {
    refusal.needed = "a device that the engine has an order for";
    refusal.because = cat("no order of ", operation.name, " holds for what is asked");
  } else {
    refusal.needed = order->names.empty() ? "a name" : cat("one of ", joined(order->names));
    refusal.because = cat("nothing else is tried here unless it is named [", order->source, "]");
  }
  return refusal;
}

}  // namespace

Choice evaluate(const CatalogOperation& operation, const Facts& asked, std::string_view forced) {
  std::vector<const CatalogEntry*> sequence;
  const CatalogOrder* order = order_for(operation, asked);
  if (order != nullptr) {
    for (const std::string& name : order->names) {
      const auto entry = std::find_if(operation.entries.begin(), operation.entries.end(),
                                      [&](const CatalogEntry& one) { return one.name == name; });
      if (entry != operation.entries.end()) sequence.push_back(&*entry);
    }
  }
  const size_t in_order = operation.orders.empty() ? operation.entries.size() : sequence.size();
  for (const CatalogEntry& entry : operation.entries) {
    if (std::find(sequence.begin(), sequence.end(), &entry) == sequence.end()) {
      sequence.push_back(&entry);
    }
  }
  std::vector<Candidate> candidates;
  for (const CatalogEntry* entry : sequence) {
    Candidate candidate{entry->name, refusals(rules_of(entry->rules), asked)};
    if (candidates.size() >= in_order && forced.empty()) {
      candidate.refusals.insert(candidate.refusals.begin(),
                                not_in_the_order(operation, order, entry->name));
    }
    candidates.push_back(std::move(candidate));
  }
  return choose(operation.name, std::move(candidates), forced);
}

std::vector<Choice> evaluate_catalog(const Catalog& catalog, const Facts& asked) {
  std::vector<Choice> out;
  for (const CatalogOperation& operation : catalog.operations) {
    out.push_back(evaluate(operation, asked));
  }
  return out;
}

bool all_chosen(std::span<const Choice> choices) {
  return std::all_of(choices.begin(), choices.end(),
                     [](const Choice& choice) { return choice.chosen.has_value(); });
}

const Choice* find_choice(std::span<const Choice> choices, std::string_view operation) {
  for (const Choice& choice : choices) {
    if (choice.operation == operation) return &choice;
  }
  return nullptr;
}

std::vector<std::string> catalog_names() { return data_names(kFolder); }

Result<std::string> find_catalog_file(std::string_view name_or_path) {
  return find_data_file(kFolder, name_or_path, "catalogue");
}

Result<Catalog> read_catalog(std::string_view name_or_path) {
  TOPKNOT_TRY(const std::string path, find_catalog_file(name_or_path));
  TOPKNOT_TRY(const std::string text, read_text_file(path, kMaxJsonFileBytes));
  return parse_catalog(text, path);
}

}  // namespace topknot::capability
