#include "topknot/version.h"

#include "topknot_commit.h"

namespace topknot {

const BuildInfo& build_info() {
  static constexpr BuildInfo kInfo = {.version = TOPKNOT_VERSION,
                                      .commit = TOPKNOT_COMMIT,
                                      .compiler = TOPKNOT_COMPILER,
                                      .build_type = TOPKNOT_BUILD_TYPE,
                                      .cuda_architectures = TOPKNOT_BUILT_ARCHITECTURES};
  return kInfo;
}

}  // namespace topknot
