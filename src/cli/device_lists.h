// What of every list of implementations can be chosen on one device, for people and for programs.
#pragma once

#include <string>

#include "attention/backend_list.h"
#include "cli/output.h"
#include "plan/target.h"

namespace topknot::cli {

// {"device": {...}, "lists": [{"operations", "entries": [...]}]}; docs/plan.md has the schema.
Json device_lists_json(const plan::Target& target, const attention::BackendList& backends);

// The same as text of at most 100 columns.
std::string device_lists_text(const Json& lists);

}  // namespace topknot::cli
