#include "cli/catalog_report.h"

#include "base/strings.h"
#include "cli/text.h"

namespace topknot::cli {
namespace {

std::string result_text(const plan::CatalogAnswer& answer) {
  std::string refused;
  for (const capability::Choice& each : answer.choices) {
    if (!each.chosen) refused += cat(refused.empty() ? "" : ", ", each.operation);
  }
  return refused.empty() ? "each operation has an implementation; memory was not asked about"
                         : cat("IT WOULD NOT RUN: no implementation of ", refused, " takes this");
}

}  // namespace

Json catalog_json(const capability::Catalog& catalog, const plan::CatalogAnswer& answer,
                  const PlannedModel& model) {
  Json operations = Json::array();
  for (const capability::Choice& each : answer.choices) {
    operations.push_back(operation_json({each, answer.asked}));
  }
  return {{"complete", capability::all_chosen(answer.choices)},
          {"catalog",
           {{"name", json_text(catalog.name)},
            {"engine", json_text(catalog.engine)},
            {"as_of", json_text(catalog.as_of)},
            {"about", json_text(catalog.about)}}},
          {"model", model_json(model)},
          {"machine", machine_json(answer.target, model)},
          {"operations", std::move(operations)}};
}

std::string catalog_text(const capability::Catalog& catalog, const plan::CatalogAnswer& answer,
                         const PlannedModel& model) {
  std::string out = model_text(model) + machine_text(answer.target, model);
  out += line(0, cat("engine   ", printable(catalog.engine), " as of ", printable(catalog.as_of),
                     " (", printable(catalog.name), "): ", printable(catalog.about, 400)));
  out += line(0, cat("asked    ", answer.asked.to_string()));
  out += line(0, cat("result   ", result_text(answer)));
  for (const capability::Choice& each : answer.choices) {
    const bool chosen = each.chosen.has_value();
    out += '\n';
    out += line(0, cat(printable(each.operation), ": ",
                       chosen ? printable(each.candidates[*each.chosen].name)
                              : std::string("nothing can run it")));
    out += choice_text(each);
  }
  return out;
}

}  // namespace topknot::cli
