// Which Topknot this is: facts of the build, fixed when it was compiled. What the machine can do is
// asked of it at run time (src/device).
#pragma once

#include "topknot/export.h"

namespace topknot {

// Strings live as long as the program; none is null.
struct BuildInfo {
  const char* version;     // "0.1.0"
  const char* commit;      // short hash, "-dirty" after it if the tree had changes; or "unknown"
  const char* compiler;    // "GNU 12.2.0"
  const char* build_type;  // "Release"; sanitizers in parentheses
  const char* cuda_architectures;  // "80 90"; empty without GPU code
};

TOPKNOT_API const BuildInfo& build_info();

}  // namespace topknot
