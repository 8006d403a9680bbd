// One answer of a model, as `run` gives it: streamed text or one JSON object, and its summary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/output.h"
#include "topknot/engine.h"
#include "topknot/error.h"

namespace topknot::cli {

struct AnswerOptions {
  GenerateRequest request;  // all but the prompt and the callbacks
  bool json = false;
  bool quiet = false;  // no summary
};

// Generates until a stop or Ctrl-C. Text goes to standard output as it comes and ends with a
// newline; with `json`, one object instead. The summary goes to standard error.
Result<Completion> answer(Engine* engine, std::vector<int32_t> prompt,
                          const AnswerOptions& options);

Json completion_json(const EngineInfo& info, const Completion& completion, bool with_logprobs);
std::string summary(const EngineInfo& info, const Completion& completion);

}  // namespace topknot::cli
