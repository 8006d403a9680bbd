#include "cli/answer.h"

#include <utility>

#include "base/strings.h"
#include "base/try.h"
#include "cli/interrupt.h"

namespace topknot::cli {
namespace {

Json logprob_json(const TokenLogprob& entry) {
  Json bytes = Json::array();
  for (const char byte : entry.bytes) bytes.push_back(static_cast<unsigned char>(byte));
  return {{"token", entry.token},
          {"text", json_text(entry.bytes)},
          {"bytes", std::move(bytes)},
          {"logprob", entry.logprob}};
}

// One line for each token: its own logprob, then the likeliest.
std::string logprob_lines(const Completion& completion) {
  std::string out;
  for (const auto& row : completion.logprobs) {
    for (size_t i = 0; i < row.size(); ++i) {
      out += fmt::format("{}{} '{}' {:.4f}",
                         i == 0   ? ""
                         : i == 1 ? "  of  "
                                  : ", ",
                         row[i].token, printable(row[i].bytes), row[i].logprob);
    }
    out += '\n';
  }
  return out;
}

// " at 12.3 tokens/s"; nothing while the rate is not known.
std::string at_rate(double tokens_per_second) {
  return tokens_per_second > 0 ? fmt::format(" at {:.1f} tokens/s", tokens_per_second) : "";
}

}  // namespace

Json completion_json(const EngineInfo& info, const Completion& completion, bool with_logprobs) {
  Json json = {{"text", json_text(completion.text)},
               {"tokens", completion.tokens},
               {"prompt_tokens", completion.prompt_tokens},
               {"cached_tokens", completion.cached_tokens},
               {"stop", stop_reason_name(completion.stop)},
               {"attention", info.sparse ? "sparse" : "dense"},
               {"attention_backend", info.attention_backend},
               {"sparse_queries", completion.sparse_queries},
               {"queries", completion.queries},
               {"prompt_tps", completion.prompt_tokens_per_second()},
               {"generation_tps", completion.generation_tokens_per_second()},
               {"seed", completion.seed}};
  if (!with_logprobs) return json;
  Json list = Json::array();
  for (const auto& row : completion.logprobs) {
    Json entry = logprob_json(row.front());
    Json top = Json::array();
    for (size_t i = 1; i < row.size(); ++i) top.push_back(logprob_json(row[i]));
    entry["top"] = std::move(top);
    list.push_back(std::move(entry));
  }
  json["logprobs"] = std::move(list);
  return json;
}

std::string summary(const EngineInfo& info, const Completion& completion) {
  const std::string attention = info.sparse ? cat("sparse top-", info.index_topk) : "dense";
  return fmt::format(
      "attention: {}, {} ({}); sparse queries {} of {}\n"
      "prompt: {} tokens{} ({} cached); generated: {} tokens{}\n"
      "stop: {}; seed: {}\n",
      info.attention_backend, attention, info.attention_reason, completion.sparse_queries,
      completion.queries, completion.prompt_tokens, at_rate(completion.prompt_tokens_per_second()),
      completion.cached_tokens, completion.tokens.size(),
      at_rate(completion.generation_tokens_per_second()), stop_reason_name(completion.stop),
      completion.seed);
}

Result<Completion> answer(Engine* engine, std::vector<int32_t> prompt,
                          const AnswerOptions& options) {
  GenerateRequest request = options.request;
  request.prompt = std::move(prompt);
  request.cancel = &Interrupt::flag();
  if (!options.json) request.on_text = write_output;
  TOPKNOT_TRY(Completion completion, engine->generate(request));
  const bool with_logprobs = request.logprobs > 0;
  if (options.json) {
    write_json(completion_json(engine->info(), completion, with_logprobs));
  } else {
    write_output("\n");
    if (with_logprobs) write_message(logprob_lines(completion));
  }
  if (!options.quiet) write_message(summary(engine->info(), completion));
  return completion;
}

}  // namespace topknot::cli
