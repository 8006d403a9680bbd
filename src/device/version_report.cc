#include "device/version_report.h"

#include <string_view>

#include "base/strings.h"
#include "device/cpu/cpu_features.h"
#include "topknot/version.h"

namespace topknot::device {

std::string version_report() {
  const BuildInfo& build = build_info();
  std::string features;
  for (const auto& name : feature_names(cpu_features())) {
    if (!features.empty()) features += ' ';
    features += name;
  }
  const std::string_view architectures = build.cuda_architectures;
  return cat("topknot ", build.version, " (", build.commit, ")\n",        //
             "compiler: ", build.compiler, ", ", build.build_type, "\n",  //
             "instruction sets here: ", features.empty() ? "none known" : features, "\n",
             "CUDA architectures: ",
             architectures.empty() ? "none: configure with -DTOPKNOT_CUDA=ON" : architectures,
             "\n");
}

}  // namespace topknot::device
