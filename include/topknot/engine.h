// The engine: a GGUF model opened for use. Prompts in, tokens out.
//
//   auto engine = topknot::Engine::open({.model = "model.gguf"});
//   auto prompt = engine->chat_prompt({{.role = "user", .content = "Who wrote Emma?"}}, {});
//   auto done = engine->generate({.prompt = *prompt, .on_text = [](std::string_view s) { ... }});
//
// The model's file stays mapped: whoever shortens it meanwhile ends the process by SIGBUS (the
// program `topknot` says so first). One thread uses an engine at a time. Every call that can fail
// says so by topknot::Error.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "topknot/error.h"
#include "topknot/export.h"

namespace topknot {

struct EngineOptions {
  std::string model;                    // a .gguf file, any part of a split model, or a directory
  int threads = 0;                      // 0: every core this process may use
  int64_t context = 0;                  // tokens; 0: chosen from the model and free memory
  int64_t ubatch = 512;                 // most tokens of one step of prefill
  std::string dtype = "auto";           // residual stream and product inputs: auto, f32, bf16
  std::string kv_cache_dtype = "auto";  // cache rows: auto, f32, bf16
  std::string attention_backend;        // a name of `topknot backends`; empty: chosen
  // Shared libraries with backends of others (topknot/backend_abi.h), tried first unless placed:
  // "PATH[,name=NAME][,before=NAME|,after=NAME]". Each is tried out in a child process, so open an
  // engine with libraries before starting threads.
  std::vector<std::string> backend_libraries;
  std::string kernels = "auto";          // auto, avx512, avx2, portable, reference
  bool dense = false;                    // attend to every key, whatever the indexer would pick
  std::vector<std::string> override_kv;  // "KEY=TYPE:VALUE"
  std::string chat_template;  // Jinja source instead of the file's own; empty: the file's
  bool quiet = false;         // no progress lines
};

struct SamplingOptions {
  float temperature = 0.8f;     // 0: always the likeliest token
  int32_t top_k = 40;           // 0: all
  float top_p = 0.95f;          // 1: all
  float min_p = 0.05f;          // 0: all
  float repeat_penalty = 1.0f;  // 1: none; over the last repeat_last_n tokens of prompt and output
  int32_t repeat_last_n = 64;   // -1: all
  float presence_penalty = 0.0f;   // over generated tokens
  float frequency_penalty = 0.0f;  // over generated tokens
  std::optional<uint64_t> seed;    // none: from the system
};

struct Message {
  std::string role;  // system, user, assistant, tool
  std::string content;
  std::string reasoning_content;  // of an assistant turn; may be empty
};

struct ChatOptions {
  std::optional<bool> enable_thinking;  // none: as the template decides
  bool add_generation_prompt = true;
};

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0;  // natural logarithm, of the model's own distribution
  std::string bytes;  // of this token alone; may be part of a character
};

struct GenerateRequest {
  std::vector<int32_t> prompt;  // not empty
  SamplingOptions sampling;
  int64_t max_tokens = -1;                        // -1: until a stop or the end of the context
  std::vector<std::string> stop;                  // ends the text before the first of these
  bool ignore_eos = false;                        // goes on after an end-of-generation token
  int32_t logprobs = 0;                           // how many alternatives to report with each token
  const std::atomic<bool>* cancel = nullptr;      // ends the answer when it becomes true
  std::function<void(std::string_view)> on_text;  // whole UTF-8 characters, as they come
};

enum class StopReason : uint8_t { kEndOfTurn, kStopString, kMaxTokens, kContextFull, kCancelled };
TOPKNOT_API const char* stop_reason_name(
    StopReason reason);  // "eos", "stop", "length", "context", "cancelled"

struct Completion {
  std::string text;
  std::vector<int32_t> tokens;  // generated, without the end-of-generation token that stopped it
  std::vector<std::vector<TokenLogprob>> logprobs;  // per token: the chosen one, then alternatives
  StopReason stop = StopReason::kEndOfTurn;
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;   // of the prompt: their cache rows were still there
  int64_t queries = 0;         // tokens that attended
  int64_t sparse_queries = 0;  // of them, those that saw more keys than they read
  double prompt_seconds = 0;
  double generation_seconds = 0;
  uint64_t seed = 0;

  double prompt_tokens_per_second() const {
    return prompt_seconds > 0 ? static_cast<double>(prompt_tokens - cached_tokens) / prompt_seconds
                              : 0;
  }
  double generation_tokens_per_second() const {
    return generation_seconds > 0 ? static_cast<double>(tokens.size()) / generation_seconds : 0;
  }
};

// What was decided at opening, for people and programs.
struct EngineInfo {
  std::string model_name;
  std::string architecture;
  bool sparse = false;
  std::string attention_reason;  // the key that makes it sparse, or why it is dense
  int64_t index_topk = 0;        // 0 when dense
  std::string attention_backend;
  std::string kernels;
  std::string dtype;
  std::string kv_cache_dtype;
  int threads = 0;
  int64_t context = 0;
  int64_t trained_context = 0;
  int64_t vocab = 0;
  uint64_t weight_bytes = 0;
  uint64_t cache_bytes = 0;
  std::vector<std::string> notes;     // defaults used, tensors left out
  std::vector<std::string> warnings;  // dense attention on a sparse model, and the like
};

class TOPKNOT_API Engine {
 public:
  static Result<Engine> open(const EngineOptions& options);
  // One that was moved from may only be assigned to or destroyed.
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  const EngineInfo& info() const;

  // `parse_special`: control tokens in the text become their ids. Never for text a user wrote.
  Result<std::vector<int32_t>> tokenize(std::string_view text, bool parse_special) const;
  // `special`: control tokens appear as their names.
  std::string detokenize(std::span<const int32_t> tokens, bool special) const;
  const std::vector<int32_t>& stop_tokens() const;

  // Renders the model's chat template. Scaffolding and contents are tokenised apart: a control
  // token that stands in a content stays text.
  Result<std::vector<int32_t>> chat_prompt(const std::vector<Message>& messages,
                                           const ChatOptions& options) const;

  // Reuses the cache rows of the longest common prefix with the last call.
  Result<Completion> generate(const GenerateRequest& request);

  // Negative log-likelihoods (natural) of tokens[1:], each given all before it: tokens.size() - 1
  // values.
  Result<std::vector<float>> score(std::span<const int32_t> tokens);

 private:
  struct State;
  explicit Engine(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace topknot
