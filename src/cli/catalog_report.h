// What another engine would run a model with, for people and for programs (docs/plan.md).
#pragma once

#include <string>

#include "capability/catalog.h"
#include "cli/plan_report.h"
#include "plan/other_engines.h"

namespace topknot::cli {

Json catalog_json(const capability::Catalog& catalog, const plan::CatalogAnswer& answer,
                  const PlannedModel& model);

// At most 100 columns.
std::string catalog_text(const capability::Catalog& catalog, const plan::CatalogAnswer& answer,
                         const PlannedModel& model);

}  // namespace topknot::cli
