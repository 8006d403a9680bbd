#include "attention/backend_list.h"

#include <algorithm>

#include "attention/registry.h"
#include "base/assert.h"
#include "base/strings.h"

namespace topknot::attention {
namespace {

// Backends of this program live as long as it does.
std::shared_ptr<const Backend> not_owned(const Backend* backend) {
  return {std::shared_ptr<void>(), backend};
}

}  // namespace

std::vector<capability::Refusal> refusals(const Backend& backend, const Facts& asked) {
  std::vector<capability::Refusal> out = capability::refusals(backend.rules, asked);
  if (!backend.limits) return out;
  for (capability::Refusal& each : backend.limits(asked)) out.push_back(std::move(each));
  return out;
}

BackendList::BackendList() {
  for (const RegistryEntry& each : registry()) {
    BackendEntry entry{.name = std::string(each.name)};
    if (each.backend == nullptr) {
      entry.absent.push_back(not_built(each));
    } else {
      entry.description = each.backend->description;
      entry.rules = each.backend->rules;
      entry.backend = not_owned(each.backend);
    }
    entries_.push_back(std::move(entry));
  }
}

Status BackendList::add(BackendEntry entry, const Placement& placement) {
  const auto named = [&](const std::string& name) {
    return std::find_if(entries_.begin(), entries_.end(),
                        [&](const BackendEntry& each) { return each.name == name; });
  };
  if (const auto taken = named(entry.name); taken != entries_.end()) {
    return Error{.code = Code::kInvalidArgument,
                 .what = cat("the name '", printable(entry.name), "' is taken"),
                 .where = entry.library,
                 .why = cat("it is the name of a backend of ",
                            taken->library.empty() ? "this program" : taken->library),
                 .fix = cat("give it another: --backend-library ", entry.library, ",name=mine")};
  }
  auto place = entries_.begin() + static_cast<std::ptrdiff_t>(first_);
  if (placement.where != Placement::Where::kFirst) {
    place = named(placement.neighbour);
    if (place == entries_.end()) {
      std::vector<std::string> names;
      for (const BackendEntry& each : entries_) names.push_back(each.name);
      const auto near = nearest(placement.neighbour, names, 1);
      return Error{
          .code = Code::kNotFound,
          .what = cat("no attention backend is named '", printable(placement.neighbour), "'"),
          .where = entry.library,
          .why = "a library is placed before or after a backend of the list",
          .fix = cat(near.empty() ? std::string() : cat("did you mean '", near[0], "'? "),
                     fmt::format("names are {}", fmt::join(names, ", ")))};
    }
    if (placement.where == Placement::Where::kAfter) ++place;
  }
  // What is put among the first belongs to them.
  if (static_cast<size_t>(place - entries_.begin()) <= first_) ++first_;
  entries_.insert(place, std::move(entry));
  return {};
}

capability::Choice BackendList::select(const Facts& asked, std::string_view forced) const {
  std::vector<capability::Candidate> candidates;
  for (const BackendEntry& entry : entries_) {
    capability::Candidate candidate{entry.name, {}};
    candidate.refusals = entry.backend != nullptr ? refusals(*entry.backend, asked)
                                                  : capability::refusals(entry.rules, asked);
    candidate.refusals.insert(candidate.refusals.end(), entry.absent.begin(), entry.absent.end());
    candidates.push_back(std::move(candidate));
  }
  const auto selection = asked[capability::Fact::kSelection];
  const bool dense = selection && *selection == static_cast<int64_t>(Selection::kDense);
  return capability::choose(dense ? "dense MLA attention" : "sparse MLA attention",
                            std::move(candidates), forced);
}

std::shared_ptr<const Backend> BackendList::chosen(const capability::Choice& choice) const {
  TOPKNOT_ASSERT(choice.chosen.has_value());
  TOPKNOT_ASSERT(*choice.chosen < entries_.size());
  TOPKNOT_ASSERT(entries_[*choice.chosen].backend != nullptr);
  return entries_[*choice.chosen].backend;
}

std::vector<capability::ListEntry> BackendList::list_entries() const {
  std::vector<capability::ListEntry> out;
  for (const BackendEntry& each : entries_) {
    out.push_back({.name = each.name,
                   .rules = each.rules,
                   .absent = each.absent,
                   .description = each.description});
    if (each.backend != nullptr) out.back().limits = each.backend->limits;
  }
  return out;
}

}  // namespace topknot::attention
