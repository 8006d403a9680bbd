#include "attention/registry.h"

#include <array>

#include "base/assert.h"
#include "base/strings.h"

namespace topknot::attention {

// CMake writes BUILT(name) or NOT_BUILT(name, option) for each line of backends.def.
#define BUILT(folder, when) \
  namespace folder {        \
  const Backend& backend(); \
  }
#define NOT_BUILT(folder, when)
#include "attention/backends.inc"
#undef BUILT
#undef NOT_BUILT

std::span<const RegistryEntry> registry() {
  static const auto entries = std::to_array<RegistryEntry>({
#define BUILT(folder, when) {#folder, &folder::backend(), #when},
#define NOT_BUILT(folder, when) {#folder, nullptr, #when},
#include "attention/backends.inc"
#undef BUILT
#undef NOT_BUILT
  });
  return entries;
}

capability::Choice select_backend(const Facts& asked, std::string_view forced) {
  using capability::Fact;
  std::vector<capability::Candidate> candidates;
  for (const RegistryEntry& entry : registry()) {
    capability::Candidate candidate{std::string(entry.name), {}};
    if (entry.backend == nullptr) {
      candidate.refusals.push_back({.what = "build",
                                    .needed = cat(entry.built_when, "=ON"),
                                    .found = "OFF",
                                    .because = "this program was built without it",
                                    .remedy = cat("configure with -D", entry.built_when, "=ON")});
    } else {
      candidate.refusals = capability::refusals(entry.backend->rules, asked);
    }
    candidates.push_back(std::move(candidate));
  }
  const auto selection = asked[Fact::kSelection];
  const bool dense = selection && *selection == static_cast<int64_t>(Selection::kDense);
  return capability::choose(dense ? "dense MLA attention" : "sparse MLA attention",
                            std::move(candidates), forced);
}

capability::DeviceKind device_kind(const Backend& backend) {
  using capability::DeviceKind;
  for (const Rule& rule : backend.rules) {
    if (rule.fact != capability::Fact::kDevice) continue;
    return capability::holds(rule.accepts, static_cast<int64_t>(DeviceKind::kCuda))
               ? DeviceKind::kCuda
               : DeviceKind::kCpu;
  }
  return DeviceKind::kCpu;
}

const Backend& chosen_backend(const capability::Choice& choice) {
  TOPKNOT_ASSERT(choice.chosen.has_value());
  return *registry()[*choice.chosen].backend;
}

}  // namespace topknot::attention
