// The trained model as llama.cpp's Q4_K_M, and in a mix of 15 types, against transformers with the
// same weights.
#include <gtest/gtest.h>

#include <cmath>

#include "golden/tiny_checks.h"

namespace topknot::test {
namespace {

class QuantModel : public testing::TestWithParam<const char*> {};

TEST_P(QuantModel, PromptsOnTheFastPath) {
  const std::string name = std::string("tiny-glm-dsa-") + GetParam();
  const auto prompts = prompts_in(must(load_quant_prompts(name)), kMiddle);
  RunnerOptions path = fast_path();
  path.context = 1152;
  const auto runner = open_model(data_path("models/" + name + ".gguf"), path);
  check_exact(runner.get(), prompts, std::string(GetParam()) + " fast f32");
}

INSTANTIATE_TEST_SUITE_P(Files, QuantModel, testing::Values("q4_k_m", "mixed"),
                         [](const auto& file) { return std::string(file.param); });

}  // namespace
}  // namespace topknot::test
