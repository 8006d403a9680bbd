// topknot perplexity: how well a model predicts a text, sparse and dense side by side.
#include <cmath>
#include <memory>

#include "base/log.h"
#include "base/strings.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/model_options.h"
#include "cli/output.h"

namespace topknot::cli {
namespace {

constexpr int64_t kDefaultWindow = 2048;
constexpr int64_t kMinWindow = 2;  // one token of context, one that is scored

struct PerplexityOptions {
  ModelOptions model;
  std::string file;
  int64_t window = kDefaultWindow;
  int64_t chunks = -1;
  bool json = false;
};

// Mean and standard error of values that are taken as independent.
class Mean {
 public:
  void add(double value) {
    ++count_;
    const double before = mean_;
    mean_ += (value - before) / static_cast<double>(count_);
    squares_ += (value - before) * (value - mean_);
  }
  int64_t count() const { return count_; }
  double value() const { return mean_; }
  double error() const {
    const auto n = static_cast<double>(count_);
    return count_ > 1 ? std::sqrt(squares_ / (n - 1) / n) : 0;
  }

 private:
  int64_t count_ = 0;
  double mean_ = 0;
  double squares_ = 0;
};

// One way of attending and what it made of the text.
struct Side {
  Engine engine;
  Mean nll;
  int64_t queries = 0;
  int64_t sparse_queries = 0;

  bool sparse() const { return engine.info().sparse; }
  const char* name() const { return sparse() ? "sparse" : "dense"; }
  double perplexity() const { return std::exp(nll.value()); }
  double perplexity_error() const { return perplexity() * nll.error(); }
};

Result<std::vector<float>> score_window(Side* side, std::span<const int32_t> window) {
  TOPKNOT_TRY(auto nll, side->engine.score(window));
  for (const float value : nll) side->nll.add(static_cast<double>(value));
  const auto tokens = static_cast<int64_t>(window.size());
  side->queries += tokens;
  // The token at position p sees p + 1 keys; it is sparse when those are more than top-k.
  if (side->sparse()) {
    side->sparse_queries += std::max<int64_t>(tokens - side->engine.info().index_topk, 0);
  }
  return nll;
}

// The sparse side first, when the model has one and --dense was not given.
Result<std::vector<Side>> open_sides(PerplexityOptions* o) {
  o->model.engine.context = o->window;
  o->model.engine.ubatch = std::min(o->model.engine.ubatch, o->window);
  std::vector<Side> sides;
  TOPKNOT_TRY(Engine first, open_engine(&o->model));
  log_info(describe(first.info()));
  const bool sparse = first.info().sparse;
  sides.push_back({.engine = std::move(first)});
  if (sparse) {
    EngineOptions dense = o->model.engine;
    dense.dense = true;
    dense.quiet = true;  // the weights are in memory by now
    TOPKNOT_TRY(Engine second, Engine::open(dense));
    sides.push_back({.engine = std::move(second)});
  }
  return sides;
}

Result<std::vector<int32_t>> tokenize(const PerplexityOptions& o, const std::string& text,
                                      const Engine& engine) {
  TOPKNOT_TRY(auto tokens, engine.tokenize(text, false));
  if (static_cast<int64_t>(tokens.size()) < kMinWindow) {
    return Error{.code = Code::kInvalidArgument,
                 .what = "the text is too short to be scored",
                 .where = o.file,
                 .why = cat("needed: at least ", kMinWindow, " tokens; found: ", tokens.size()),
                 .fix = "give a longer text"};
  }
  return tokens;
}

struct Scored {
  int64_t windows = 0;
  int64_t text_tokens = 0;
  Mean difference;  // sparse minus dense, token by token
};

// Whole windows; a text shorter than one is one window.
Result<Scored> score_text(const PerplexityOptions& o, std::span<const int32_t> tokens,
                          std::vector<Side>* sides) {
  const auto size = static_cast<size_t>(o.window);
  size_t windows = std::max<size_t>(tokens.size() / size, 1);
  if (o.chunks > 0) windows = std::min(windows, static_cast<size_t>(o.chunks));
  Scored scored{.windows = static_cast<int64_t>(windows),
                .text_tokens = static_cast<int64_t>(tokens.size())};
  for (size_t w = 0; w < windows; ++w) {
    const auto window = tokens.subspan(w * size, std::min(size, tokens.size() - w * size));
    std::vector<std::vector<float>> nlls;
    std::string so_far;
    for (Side& side : *sides) {
      TOPKNOT_TRY(auto nll, score_window(&side, window));
      nlls.push_back(std::move(nll));
      so_far += fmt::format(", {} {:.4f}", side.name(), side.perplexity());
    }
    for (size_t i = 0; nlls.size() == 2 && i < nlls[0].size(); ++i) {
      scored.difference.add(static_cast<double>(nlls[0][i]) - static_cast<double>(nlls[1][i]));
    }
    log_info(cat("window ", w + 1, " of ", windows, so_far));
  }
  return scored;
}

Json side_json(const Side& side) {
  return {{"mean_nll", side.nll.value()},
          {"perplexity", side.perplexity()},
          {"perplexity_error", side.perplexity_error()},
          {"attention_backend", side.engine.info().attention_backend},
          {"sparse_queries", side.sparse_queries},
          {"queries", side.queries}};
}

void print(const PerplexityOptions& o, const Scored& scored, const std::vector<Side>& sides) {
  const int64_t count = sides.front().nll.count();
  if (o.json) {
    Json json = {{"window", o.window},
                 {"windows", scored.windows},
                 {"text_tokens", scored.text_tokens},
                 {"scored_tokens", count}};
    for (const Side& side : sides) json[side.name()] = side_json(side);
    if (sides.size() == 2) {
      json["difference"] = {{"mean_nll", scored.difference.value()},
                            {"error", scored.difference.error()}};
    }
    write_json(json);
    return;
  }
  std::string out = cat(count, " tokens scored of ", scored.text_tokens, ", in ", scored.windows,
                        scored.windows == 1 ? " window" : " windows", " of ", o.window, "\n");
  out += fmt::format("{:<10}{:>12}{:>14}{:>12}   {}\n", "attention", "mean nll", "perplexity",
                     "+/-", "sparse queries");
  for (const Side& side : sides) {
    out +=
        fmt::format("{:<10}{:>12.5f}{:>14.4f}{:>12.4f}   {} of {}\n", side.name(), side.nll.value(),
                    side.perplexity(), side.perplexity_error(), side.sparse_queries, side.queries);
  }
  if (sides.size() == 2) {
    out += fmt::format("sparse - dense: {:+.5f} +/- {:.5f} nats a token\n",
                       scored.difference.value(), scored.difference.error());
  }
  write_output(out);
}

Status measure(PerplexityOptions* o) {
  TOPKNOT_TRY(const std::string text, read_text(o->file));
  TOPKNOT_CHECK_OK(check_text(text, "the text", o->file));
  TOPKNOT_TRY(auto sides, open_sides(o));
  TOPKNOT_TRY(const auto tokens, tokenize(*o, text, sides.front().engine));
  TOPKNOT_TRY(const Scored scored, score_text(*o, tokens, &sides));
  print(*o, scored, sides);
  return {};
}

}  // namespace

void add_perplexity(CLI::App* program, Action* action) {
  CLI::App* app = program->add_subcommand(
      "perplexity", "Score a text, through sparse and through dense attention");
  const auto o = std::make_shared<PerplexityOptions>();
  app->add_option("-f,--file", o->file, "the text; - reads standard input")->required();
  app->add_option("-c,--ctx-size,--window", o->window,
                  "tokens of a window; each is scored from its own start")
      ->capture_default_str()
      ->check(CLI::Range(kMinWindow, int64_t{1} << 31));
  app->add_option("--chunks", o->chunks, "most windows; -1: the whole text")->capture_default_str();
  add_json_option(app, &o->json);
  add_model_options(app, ContextOption::kNo, &o->model);
  app->footer(examples({
      "topknot perplexity -m model.gguf -f text.txt -c 512",
      "topknot perplexity -m model.gguf -f text.txt -c 300 --chunks 1 --json",
  }));
  app->callback([o, action] {
    *action = [o] {
      const auto status = measure(o.get());
      return status ? 0 : report(status.error());
    };
  });
}

}  // namespace topknot::cli
