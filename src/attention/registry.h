// All attention backends of this program, in the order of backends.def.
#pragma once

#include <span>
#include <string_view>

#include "attention/attention.h"

namespace topknot::attention {

struct RegistryEntry {
  std::string_view name;
  const Backend* backend;       // null when it was not built
  std::string_view built_when;  // the CMake option that builds it
};

std::span<const RegistryEntry> registry();

// What a list of candidates says of a backend that was not built.
capability::Refusal not_built(const RegistryEntry& entry);

// The choice among the backends of this program, without libraries: BackendList().select().
capability::Choice select_backend(const Facts& asked, std::string_view forced = {});

// Where a backend computes, by its rule about the device.
capability::DeviceKind device_kind(const Backend& backend);

// The backend of such a choice that has one.
const Backend& chosen_backend(const capability::Choice& choice);

}  // namespace topknot::attention
