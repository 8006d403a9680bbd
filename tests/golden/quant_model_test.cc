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

TEST(QuantModel, ShortPromptsOnTheReferencePath) {
  const auto runner = open_quant(reference_path(), 256);
  for (const Prompt& prompt : must(load_quant_prompts(kName))) {
    if (prompt.ids.size() > 100) continue;
    check_prompt(runner.get(), prompt, {kTinyLogitError, 0}, "q4_k_m reference");
  }
}

TEST(QuantModel, PromptsOnTheFastPath) {
  const auto runner = open_quant(fast_path(), 4224);
  for (const Prompt& prompt : must(load_quant_prompts(kName))) {
    const double limit = prompt.ids.size() > 256 ? kTinyOtherKeysError : kTinyLogitError;
    check_prompt(runner.get(), prompt, {limit, 0}, "q4_k_m fast f32");
  }
}

TEST(QuantModel, PromptsOnTheUserPath) {
  const auto runner = open_quant(user_path(), 4224);
  const PromptLimits limits{kTinyLogitError, bf16_state_error(kLayers)};
  for (const Prompt& prompt : must(load_quant_prompts(kName))) {
    check_prompt(runner.get(), prompt, limits, "q4_k_m user");
    check_forced(runner.get(), prompt, limits, "q4_k_m user");
  }
}

}  // namespace
}  // namespace topknot::test
