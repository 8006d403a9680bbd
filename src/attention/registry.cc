#include "attention/registry.h"

#include <array>

#include "attention/backend_list.h"
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

capability::Refusal not_built(const RegistryEntry& entry) {
  return {.what = "build",
          .needed = cat(entry.built_when, "=ON"),
          .found = "OFF",
          .because = "this program was built without it",
          .remedy = cat("configure with -D", entry.built_when, "=ON")};
}

capability::Choice select_backend(const Facts& asked, std::string_view forced) {
  return BackendList().select(asked, forced);
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
