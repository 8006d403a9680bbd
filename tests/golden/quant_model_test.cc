// The trained model as llama.cpp's Q4_K_M, against transformers with the same weights.
#include <gtest/gtest.h>

#include <cmath>

#include "golden/tiny_checks.h"

namespace topknot::test {
namespace {

constexpr const char* kName = "tiny-glm-dsa-q4_k_m";

std::unique_ptr<ModelRunner> open_quant(RunnerOptions path, int64_t context) {
  path.context = context;
  return open_model(data_path(std::string("models/") + kName + ".gguf"), path);
}

TEST(QuantModel, PromptsOnTheFastPath) {
  const auto prompts = prompts_in(must(load_quant_prompts(kName)), kMiddle);
  check_exact(open_quant(fast_path(), 1152).get(), prompts, "q4_k_m fast f32");
}

}  // namespace
}  // namespace topknot::test
