// Shared libraries that a user named, put among the backends of this program once they have proved
// that they compute (docs/backends.md).
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include "attention/backend_list.h"
#include "topknot/error.h"

namespace topknot::attention {

inline constexpr size_t kMaxLibraries = 64;
// A tile of the probe takes milliseconds in plain scalar code.
inline constexpr std::chrono::seconds kLibraryProbeLimit{20};

// "PATH[,name=NAME][,before=NAME|,after=NAME]".
struct LibraryOption {
  std::string path;
  std::string name;  // instead of the library's own; may be empty
  Placement placement;
};
Result<LibraryOption> parse_library_option(std::string_view text);

// Loads the library, and computes small tiles with it beside cpu_reference, in a child process;
// then loads it here. An Error says what it is that it cannot do; a fault, an exit or no end within
// `limit` is one, too. A selection that the library's own limits refuse for every tile stays
// unproven, and is refused. Call this before starting threads or using a GPU.
Result<BackendEntry> load_library(const LibraryOption& option,
                                  std::chrono::milliseconds limit = kLibraryProbeLimit);

// The backends of this program and those of the libraries, added in the order given.
Result<BackendList> backends_with(std::span<const std::string> library_options);

}  // namespace topknot::attention
