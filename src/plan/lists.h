// Every ordered list of implementations that a plan chooses from, and what of them can ever be
// chosen on a device.
#pragma once

#include <string_view>
#include <vector>

#include "attention/backend_list.h"
#include "capability/standing.h"

namespace topknot::plan {

struct OperationList {
  std::string_view operations;                 // the names of a plan that choose from it: "router"
  std::vector<capability::ListEntry> entries;  // in the order tried
};

// In the order of a step. Attention is chosen from `backends`, which must outlive the lists.
std::vector<OperationList> operation_lists(const attention::BackendList& backends);

}  // namespace topknot::plan
