#include "topknot/engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "attention/libraries.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/strings.h"
#include "base/try.h"
#include "chat/encode.h"
#include "chat/prompt.h"
#include "engine/prefetch.h"
#include "engine/runner.h"
#include "engine/sampler.h"
#include "engine/stop_filter.h"
#include "model/vocabulary.h"
#include "tokenizer/stream_decoder.h"

namespace topknot {

using tokenizer::ParseSpecial;

const char* stop_reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::kEndOfTurn: return "eos";
    case StopReason::kStopString: return "stop";
    case StopReason::kMaxTokens: return "length";
    case StopReason::kContextFull: return "context";
    case StopReason::kCancelled: return "cancelled";
  }
  return "unknown";
}

struct Engine::State {
  State(gguf::ModelFile opened, model::ModelConfig read, model::BoundWeights bound,
        tokenizer::Tokenizer words)
      : file(std::move(opened)),
        config(std::move(read)),
        weights(std::move(bound.weights)),
        tokens(std::move(words)) {}

  gguf::ModelFile file;
  model::ModelConfig config;
  model::Weights weights;
  tokenizer::Tokenizer tokens;
  std::optional<Result<chat::Template>> chat_template;  // none: the file has none
  std::vector<bool> allowed;                            // tokens that may be sampled
  EngineInfo info;
  bool quiet = false;
  std::unique_ptr<engine::Runner> runner;
};

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Result<std::vector<gguf::Override>> parse_overrides(const std::vector<std::string>& texts) {
  std::vector<gguf::Override> out;
  for (const std::string& text : texts) {
    TOPKNOT_TRY(gguf::Override parsed, gguf::Override::parse(text));
    out.push_back(std::move(parsed));
  }
  return out;
}

// An override of a key that the file does not have may be meant, or misspelt: it is told either
// way.
Result<std::vector<std::string>> added_keys(const std::string& path,
                                            const std::vector<gguf::Override>& overrides) {
  std::vector<std::string> out;
  if (overrides.empty()) return out;
  TOPKNOT_TRY(const gguf::ModelFile file, gguf::ModelFile::open(path));
  std::vector<std::string> names;
  for (const gguf::KeyValue& each : file.metadata()) names.emplace_back(each.key);
  for (const gguf::Override& each : overrides) {
    if (file.find_key(each.key) != nullptr) continue;
    const auto near = nearest(each.key, names, 1);
    out.push_back(cat("--override-kv adds ", printable(each.key), ", which the file does not have",
                      near.empty() ? "" : cat("; it has ", printable(near.front()))));
  }
  return out;
}

EngineInfo describe(const model::ModelConfig& config, const plan::Plan& plan,
                    uint64_t weight_bytes) {
  EngineInfo info;
  info.model_name = config.name;
  info.architecture = config.architecture;
  info.sparse = plan.sparse;
  info.attention_reason = plan.attention_reason;
  info.index_topk = plan.sparse ? config.indexer->topk : 0;
  info.attention_backend = plan.attention_backend->name;
  info.kernels = plan.kernels;
  info.dtype = capability::activation_name(plan.dtype);
  info.kv_cache_dtype = capability::kv_format_name(plan.cache.format);
  info.threads = plan.threads;
  info.context = plan.context;
  info.trained_context = config.context_length;
  info.weight_bytes = weight_bytes;
  info.cache_bytes = plan.cache_bytes;
  info.warnings = plan.warnings;
  return info;
}

}  // namespace

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

const EngineInfo& Engine::info() const { return state_->info; }

const std::vector<int32_t>& Engine::stop_tokens() const { return state_->tokens.stop_ids(); }

Result<Engine> Engine::open(const EngineOptions& options) {
  TOPKNOT_TRY(const auto overrides, parse_overrides(options.override_kv));
  plan::PlanRequest request;
  TOPKNOT_TRY(request.backends, attention::backends_with(options.backend_libraries));
  TOPKNOT_TRY(gguf::ModelFile file, gguf::ModelFile::open(options.model, overrides));
  TOPKNOT_TRY(const std::vector<std::string> added, added_keys(options.model, overrides));
  TOPKNOT_TRY(model::ModelConfig config, model::read_config(file));
  TOPKNOT_TRY(const model::CheckedTensors tensors, model::check_tensors(file, config));
  const device::HostFacts host = device::host_facts();
  request.dtype = options.dtype;
  request.kv_cache_dtype = options.kv_cache_dtype;
  request.attention_backend = options.attention_backend;
  request.kernels = options.kernels;
  request.dense = options.dense;
  request.context = options.context;
  request.ubatch = options.ubatch;
  request.threads = options.threads;
  request.device = "cpu";
  const device::Machine machine = device::machine_of(host, {});
  TOPKNOT_TRY(const plan::Plan plan, plan::make_plan(config, tensors, request, machine));
  // A plan would refuse these types, too, but does not know which tensors have them.
  TOPKNOT_CHECK_OK(model::check_types(file, tensors));
  TOPKNOT_CHECK_OK(plan::check_runnable(plan, request));
  TOPKNOT_TRY(model::BoundWeights bound, model::bind_weights(file, config));
  TOPKNOT_TRY(tokenizer::Tokenizer words, model::read_tokenizer(file));
  if (bound.vocab < words.vocab_size()) {
    return Error{
        .code = Code::kCorrupt,
        .what = "the tokenizer has more tokens than the model",
        .where = file.path(),
        .why = cat(words.vocab_size(), " tokens; token_embd.weight has ", bound.vocab, " rows"),
        .fix = "convert the model again"};
  }
  EngineInfo info = describe(config, plan, file.total_bytes());
  info.vocab = words.vocab_size();
  info.notes = config.notes;
  info.notes.insert(info.notes.end(), bound.notes.begin(), bound.notes.end());
  info.warnings.insert(info.warnings.end(), added.begin(), added.end());

  auto state = std::make_unique<State>(std::move(file), std::move(config), std::move(bound),
                                       std::move(words));
  state->info = std::move(info);
  state->quiet = options.quiet;
  if (!options.chat_template.empty()) {
    state->chat_template = chat::Template::parse(options.chat_template, "the chat template given");
  } else if (const auto source = model::read_chat_template(state->file)) {
    state->chat_template =
        chat::Template::parse(*source, cat(state->file.path(), ", tokenizer.chat_template"));
  }
  state->allowed.resize(static_cast<size_t>(state->tokens.vocab_size()));
  for (int32_t id = 0; id < state->tokens.vocab_size(); ++id) {
    state->allowed[static_cast<size_t>(id)] = !state->tokens.is_unused(id);
  }
  engine::prefetch(tensors.tensors, host.memory.available_bytes, plan.threads, options.quiet);
  TOPKNOT_TRY(state->runner, engine::Runner::create(state->config, state->weights, plan));
  return Engine(std::move(state));
}

Result<std::vector<int32_t>> Engine::tokenize(std::string_view text, bool parse_special) const {
  return state_->tokens.encode(text, parse_special ? ParseSpecial::kYes : ParseSpecial::kNo);
}

std::string Engine::detokenize(std::span<const int32_t> tokens, bool special) const {
  return state_->tokens.decode(tokens, special);
}

Result<std::vector<int32_t>> Engine::chat_prompt(const std::vector<Message>& messages,
                                                 const ChatOptions& options) const {
  if (!state_->chat_template) {
    return Error{.code = Code::kNotFound,
                 .what = "the model has no chat template",
                 .where = state_->file.path(),
                 .why = "tokenizer.chat_template is absent",
                 .fix = "--chat-template-file FILE, or --raw to give the prompt as it is"};
  }
  if (!*state_->chat_template) {
    Error error = state_->chat_template->error();
    error.fix = "--chat-template-file FILE, or --raw to give the prompt as it is";
    return error;
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Message& message : messages) {
    // JSON is UTF-8, and a template that cuts strings would hide where the fault lies.
    for (const std::string* text : {&message.content, &message.reasoning_content}) {
      if (const size_t at = find_invalid_utf8(*text); at != std::string::npos) {
        return Error{
            .code = Code::kInvalidArgument,
            .what = cat("the ", printable(message.role), " message is not valid UTF-8"),
            .why = cat("byte ", at, " cannot stand there: ", printable(text->substr(at, 4))),
            .fix = "convert the text to UTF-8"};
      }
    }
    nlohmann::ordered_json item = {{"role", message.role}, {"content", message.content}};
    if (!message.reasoning_content.empty()) item["reasoning_content"] = message.reasoning_content;
    list.push_back(std::move(item));
  }
  const tokenizer::Tokenizer& words = state_->tokens;
  const auto name = [&](std::optional<int32_t> id) {
    return id ? std::string(words.token_bytes(*id)) : std::string();
  };
  chat::PromptOptions prompt;
  prompt.add_generation_prompt = options.add_generation_prompt;
  prompt.bos_token = name(words.bos());
  prompt.eos_token = name(words.eos());
  prompt.pad_token = name(words.pad());
  prompt.unk_token = name(words.unk());
  if (options.enable_thinking)
    prompt.template_kwargs = {{"enable_thinking", *options.enable_thinking}};
  TOPKNOT_TRY(const chat::Rendered rendered,
              chat::render_chat(**state_->chat_template, list, nullptr, prompt));
  return chat::encode(rendered, words);
}

namespace {

// One call of generate().
class Generation {
 public:
  Generation(const GenerateRequest& request, const tokenizer::Tokenizer& tokens,
             const std::vector<bool>& allowed, engine::Runner* runner)
      : request_(request),
        tokens_(tokens),
        runner_(*runner),
        sampler_(request.sampling, request.prompt, allowed),
        decoder_(tokens),
        stops_(request.stop) {}

  Result<Completion> run(bool quiet) {
    out_.prompt_tokens = static_cast<int64_t>(request_.prompt.size());
    out_.seed = sampler_.seed();
    TOPKNOT_TRY(const bool prefilled, prefill(quiet));
    if (prefilled) {
      const Clock::time_point begin = Clock::now();
      TOPKNOT_CHECK_OK(generate());
      out_.generation_seconds = seconds_since(begin);
    }
    emit(stops_.push(decoder_.finish()));
    if (!stops_.stopped()) emit(stops_.finish());
    return std::move(out_);
  }

 private:
  bool cancelled() const { return request_.cancel != nullptr && request_.cancel->load(); }

  void emit(const std::string& text) {
    if (text.empty()) return;
    out_.text += text;
    if (request_.on_text) request_.on_text(text);
  }

  void count(const model::StepStats& stats) {
    out_.queries += stats.queries;
    out_.sparse_queries += stats.sparse_queries;
  }

  // False when it was cancelled.
  Result<bool> prefill(bool quiet) {
    const Clock::time_point begin = Clock::now();
    const auto& prompt = request_.prompt;
    const auto& cached = runner_.tokens();
    const size_t most = std::min(prompt.size() - 1, cached.size());  // the last token is always run
    const auto common = static_cast<size_t>(
        std::mismatch(prompt.begin(), prompt.begin() + static_cast<int64_t>(most), cached.begin())
            .first -
        prompt.begin());
    runner_.truncate(common);
    out_.cached_tokens = static_cast<int64_t>(common);
    Progress progress("prefill", "tokens", prompt.size() - common, quiet);
    for (size_t at = common; at < prompt.size();) {
      if (cancelled()) {
        out_.stop = StopReason::kCancelled;
        return false;
      }
      const size_t n = std::min(prompt.size() - at, static_cast<size_t>(runner_.ubatch()));
      const bool last = at + n == prompt.size();
      TOPKNOT_TRY(
          const model::StepStats stats,
          runner_.step(std::span(prompt).subspan(at, n),
                       last ? engine::Runner::Want::kLast : engine::Runner::Want::kNothing));
      count(stats);
      at += n;
      progress.update(at - common);
    }
    out_.prompt_seconds = seconds_since(begin);
    return true;
  }

  // Why no more may be generated, if so; asked before each token and before each step, so that no
  // step is run whose result nobody reads.
  std::optional<StopReason> limit_reached() const {
    if (request_.max_tokens >= 0 &&
        static_cast<int64_t>(out_.tokens.size()) >= request_.max_tokens) {
      return StopReason::kMaxTokens;
    }
    if (cancelled()) return StopReason::kCancelled;
    return std::nullopt;
  }

  Status generate() {
    for (;;) {
      if (const auto reached = limit_reached()) {
        out_.stop = *reached;
        return {};
      }
      const std::span<const float> logits = runner_.logits(0);
      TOPKNOT_TRY(const int32_t token, sampler_.sample(logits));
      if (!request_.ignore_eos && tokens_.is_stop(token)) {
        out_.stop = StopReason::kEndOfTurn;
        return {};
      }
      out_.tokens.push_back(token);
      if (request_.logprobs > 0) report(logits, token);
      emit(stops_.push(decoder_.push(token)));
      if (stops_.stopped()) {
        out_.stop = StopReason::kStopString;
        return {};
      }
      if (static_cast<int64_t>(runner_.tokens().size()) >= runner_.context()) {
        out_.stop = StopReason::kContextFull;
        return {};
      }
      if (limit_reached()) continue;
      TOPKNOT_TRY(const model::StepStats stats,
                  runner_.step({&token, 1}, engine::Runner::Want::kLast));
      count(stats);
    }
  }

  void report(std::span<const float> logits, int32_t token) {
    const auto entry = [&](int32_t id, float logprob) {
      return TokenLogprob{id, logprob, std::string(tokens_.token_bytes(id))};
    };
    const double own =
        static_cast<double>(logits[static_cast<size_t>(token)]) - engine::log_sum_exp(logits);
    std::vector<TokenLogprob> row = {entry(token, static_cast<float>(own))};
    for (const engine::Likely& each :
         engine::likeliest(logits, static_cast<size_t>(request_.logprobs))) {
      row.push_back(entry(each.token, each.logprob));
    }
    out_.logprobs.push_back(std::move(row));
  }

  const GenerateRequest& request_;
  const tokenizer::Tokenizer& tokens_;
  engine::Runner& runner_;
  engine::Sampler sampler_;
  tokenizer::StreamDecoder decoder_;
  engine::StopFilter stops_;
  Completion out_;
};

Status check_tokens(std::span<const int32_t> tokens, int64_t vocab, int64_t context) {
  if (tokens.empty()) {
    return Error{.code = Code::kInvalidArgument,
                 .what = "the prompt is empty",
                 .where = "the prompt",
                 .why = "a model continues at least one token",
                 .fix = "give a prompt with -p or -f"};
  }
  if (static_cast<int64_t>(tokens.size()) > context) {
    return Error{.code = Code::kOutOfRange,
                 .what = "the prompt is longer than the context",
                 .where = "the prompt",
                 .why = cat(tokens.size(), " tokens; the context holds ", context),
                 .fix = "shorten it, or ask for a larger context with -c"};
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocab) {
      return Error{.code = Code::kInvalidArgument,
                   .what = cat("token ", i, " of the prompt is ", tokens[i]),
                   .why = cat("the model knows ids 0 to ", vocab - 1),
                   .fix = "use ids of this model's tokenizer"};
    }
  }
  return {};
}

}  // namespace

Result<Completion> Engine::generate(const GenerateRequest& request) {
  TOPKNOT_CHECK_OK(check_tokens(request.prompt, state_->info.vocab, state_->info.context));
  TOPKNOT_CHECK_OK(engine::check_sampling(request.sampling));
  return Generation(request, state_->tokens, state_->allowed, state_->runner.get())
      .run(state_->quiet);
}

Result<std::vector<float>> Engine::score(std::span<const int32_t> tokens) {
  TOPKNOT_CHECK_OK(check_tokens(tokens, state_->info.vocab, state_->info.context));
  engine::Runner& runner = *state_->runner;
  runner.truncate(0);
  std::vector<float> out;
  out.reserve(tokens.size() - 1);
  Progress progress("score", "tokens", tokens.size(), state_->quiet);
  for (size_t at = 0; at < tokens.size();) {
    const size_t n = std::min(tokens.size() - at, static_cast<size_t>(runner.ubatch()));
    TOPKNOT_CHECK_OK(runner.step(tokens.subspan(at, n), engine::Runner::Want::kAll));
    for (size_t i = 0; i < n && at + i + 1 < tokens.size(); ++i) {
      const std::span<const float> logits = runner.logits(static_cast<int64_t>(i));
      const auto next = static_cast<size_t>(tokens[at + i + 1]);
      out.push_back(
          static_cast<float>(engine::log_sum_exp(logits) - static_cast<double>(logits[next])));
    }
    at += n;
    progress.update(at);
  }
  return out;
}

}  // namespace topknot
