// The backends that attention is chosen from, in the order tried: this program's, and those of
// shared libraries that a user named. A value that is passed along, never a global.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attention/attention.h"
#include "capability/rules.h"
#include "capability/standing.h"
#include "topknot/error.h"

namespace topknot::attention {

struct BackendEntry {
  std::string name;
  std::string description;
  std::span<const Rule> rules;
  std::shared_ptr<const Backend> backend;   // null when this program does not have it
  std::vector<capability::Refusal> absent;  // then: why not
  std::string library;                      // the file it is from; empty: this program
};

// Where a backend is put among the others.
struct Placement {
  enum class Where : uint8_t { kFirst, kBefore, kAfter };
  Where where = Where::kFirst;  // behind those that were put first before it
  std::string neighbour;
};

class BackendList {
 public:
  // Those of this program: registry.h.
  BackendList();

  std::span<const BackendEntry> entries() const { return entries_; }

  // kInvalidArgument when the list has its name already; kNotFound, with the nearest names, when it
  // has no such neighbour.
  Status add(BackendEntry entry, const Placement& placement);

  // The first that takes `asked`, or the one named `forced`; see capability::choose.
  capability::Choice select(const Facts& asked, std::string_view forced = {}) const;

  // The backend of a choice of this list that has one.
  std::shared_ptr<const Backend> chosen(const capability::Choice& choice) const;

  // For capability::standings() on a device.
  std::vector<capability::ListEntry> list_entries() const;

 private:
  std::vector<BackendEntry> entries_;
  size_t first_ = 0;  // how many were put first
};

}  // namespace topknot::attention
