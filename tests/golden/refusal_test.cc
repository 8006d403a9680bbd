// Files that are understood and not run: refused by name, with everything that is wrong at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden/compare.h"

namespace topknot::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Error refusal(const std::string& relative) {
  auto runner = ModelRunner::open(data_path(relative), reference_path());
  EXPECT_FALSE(runner) << relative << " was taken";
  return runner ? Error{} : runner.error();
}

TEST(Refusals, TypesThatAreNotDecodedAreNamedWithTensorAndFile) {
  const Error error = refusal("models/tiny-glm-dsa-mixed.gguf");
  EXPECT_EQ(error.code, Code::kUnsupported);
  EXPECT_THAT(error.where, HasSubstr("tiny-glm-dsa-mixed.gguf"));
  for (const char* type : {"Q2_K", "Q3_K", "Q4_0", "Q4_1", "Q5_1", "IQ4_NL", "IQ4_XS"}) {
    EXPECT_THAT(error.why, HasSubstr(std::string("has type ") + type));
  }
  EXPECT_THAT(error.why, AllOf(HasSubstr("'blk."), HasSubstr("tiny-glm-dsa-mixed.gguf)")));
  EXPECT_THAT(error.fix, AllOf(HasSubstr("Q8_0"), HasSubstr("Q4_K"), HasSubstr("BF16")));
}

}  // namespace
}  // namespace topknot::test
