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

std::span<const capability::Implementation> planned_backends() {
  using namespace capability;
  static constexpr Missing kNotWritten = {"attention has no GPU kernels in this version",
                                          "--device cpu"};
  static constexpr Rule kRules[] = {
      {Fact::kDevice, exactly(DeviceKind::kCuda), "it runs on a GPU", "--device cuda:0"},
  };
  static constexpr Implementation kList[] = {
      {"cuda", "sparse and dense MLA on a GPU", kRules, &kNotWritten},
  };
  return kList;
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

const Backend& chosen_backend(const capability::Choice& choice) {
  TOPKNOT_ASSERT(choice.chosen.has_value());
  TOPKNOT_ASSERT(*choice.chosen >= planned_backends().size());
  return *registry()[*choice.chosen - planned_backends().size()].backend;
}

}  // namespace topknot::attention
