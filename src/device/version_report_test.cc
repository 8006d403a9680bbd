#include "device/version_report.h"

#include <gmock/gmock.h>

#include "base/strings.h"
#include "device/cpu/cpu_features.h"
#include "topknot/version.h"

namespace topknot::device {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(VersionReport, NamesTheBuildAndTheMachine) {
  const auto report = version_report();
  EXPECT_THAT(report, StartsWith(cat("topknot ", build_info().version, " (", build_info().commit)));
  EXPECT_THAT(report, HasSubstr(build_info().compiler));
  EXPECT_THAT(report, HasSubstr("CUDA architectures: "));
  for (const auto& name : feature_names(cpu_features())) EXPECT_THAT(report, HasSubstr(name));
}

TEST(VersionReport, HasNoEmptyFact) {
  EXPECT_STRNE(build_info().version, "");
  EXPECT_STRNE(build_info().commit, "");
  EXPECT_STRNE(build_info().compiler, "");
}

}  // namespace
}  // namespace topknot::device
