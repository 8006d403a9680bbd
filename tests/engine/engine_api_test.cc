// The public API on the bundled model: what a program that links topknot::topknot sees.
#include "topknot/engine.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cmath>

#include "support/golden.h"

namespace topknot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

EngineOptions options() {
  EngineOptions o;
  o.model = test::bundled_model_path();
  o.threads = 2;
  o.quiet = true;
  return o;
}

GenerateRequest greedy(std::vector<int32_t> prompt, int64_t max_tokens = 64) {
  GenerateRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  request.sampling.temperature = 0;
  return request;
}

class EngineApi : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Engine::open(options());
    ASSERT_TRUE(opened) << opened.error().to_string();
    engine_.emplace(std::move(*opened));
  }

  std::vector<int32_t> question(const std::string& text) {
    auto prompt =
        engine_->chat_prompt({{.role = "user", .content = text}}, {.enable_thinking = false});
    EXPECT_TRUE(prompt);
    return *prompt;
  }

  // A prompt far beyond index_topk.
  std::vector<int32_t> long_prompt(size_t tokens) {
    auto ids = engine_->tokenize("In the beginning God created the heaven and the earth. ", false);
    std::vector<int32_t> out;
    while (out.size() < tokens) out.insert(out.end(), ids->begin(), ids->end());
    out.resize(tokens);
    return out;
  }

  std::optional<Engine> engine_;
};

TEST_F(EngineApi, AnswersAQuestion) {
  std::string streamed;
  GenerateRequest request = greedy(question("Who wrote Emma?"));
  request.on_text = [&](std::string_view text) { streamed += text; };
  const auto done = engine_->generate(request);
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(done->text, "Jane Austen wrote Emma.");
  EXPECT_EQ(streamed, done->text);
  EXPECT_EQ(done->stop, StopReason::kEndOfTurn);
  EXPECT_EQ(done->sparse_queries, 0) << "a short prompt sees fewer keys than index_topk";
  EXPECT_EQ(done->queries, done->prompt_tokens + static_cast<int64_t>(done->tokens.size()))
      << "each token attends once";
}

TEST_F(EngineApi, QueriesBeyondTopKAreSparseAndCounted) {
  const auto done = engine_->generate(greedy(long_prompt(300), 1));
  ASSERT_TRUE(done);
  EXPECT_EQ(done->queries, 300);
  EXPECT_EQ(done->sparse_queries, 300 - 256);
}

TEST_F(EngineApi, ACommonPrefixIsReusedAndChangesNothing) {
  const auto prompt = long_prompt(700);
  const auto first = engine_->generate(greedy(prompt, 20));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->cached_tokens, 0);
  const auto again = engine_->generate(greedy(prompt, 20));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->cached_tokens, 699) << "the last token is always run";
  EXPECT_EQ(again->tokens, first->tokens);
  auto other = prompt;
  other[350] = other[351];
  const auto changed = engine_->generate(greedy(other, 20));
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->cached_tokens, 350);
  auto fresh = Engine::open(options());
  ASSERT_TRUE(fresh);
  EXPECT_EQ(fresh->generate(greedy(other, 20))->tokens, changed->tokens);
}

TEST_F(EngineApi, EveryWayToStopIsNamed) {
  EXPECT_EQ(engine_->generate(greedy(question("Who wrote Emma?"), 2))->stop,
            StopReason::kMaxTokens);
  GenerateRequest request = greedy(question("Who wrote Emma?"));
  request.stop = {"Aus", "unused"};
  auto done = engine_->generate(request);
  EXPECT_EQ(done->stop, StopReason::kStopString);
  EXPECT_EQ(done->text, "Jane ");
  std::atomic<bool> cancel{true};
  request = greedy(question("Who wrote Persuasion?"));
  request.cancel = &cancel;
  EXPECT_EQ(engine_->generate(request)->stop, StopReason::kCancelled);
  EngineOptions small = options();
  small.context = 70;
  auto engine = Engine::open(small);
  ASSERT_TRUE(engine);
  request = greedy(long_prompt(60), -1);
  request.ignore_eos = true;
  done = engine->generate(request);
  EXPECT_EQ(done->stop, StopReason::kContextFull);
  EXPECT_EQ(done->tokens.size(), 11u) << "the token behind the last cache row can still be chosen";
}

TEST_F(EngineApi, CancellingEndsTheAnswerAndLeavesTheEngineUsable) {
  std::atomic<bool> cancel{false};
  GenerateRequest request = greedy(question("What is water?"), 100);
  request.ignore_eos = true;
  request.cancel = &cancel;
  int pieces = 0;
  request.on_text = [&](std::string_view) {
    if (++pieces == 5) cancel = true;
  };
  const auto done = engine_->generate(request);
  ASSERT_TRUE(done);
  EXPECT_EQ(done->stop, StopReason::kCancelled);
  EXPECT_LT(done->tokens.size(), 30u);
  EXPECT_EQ(engine_->generate(greedy(question("Who wrote Emma?")))->text,
            "Jane Austen wrote Emma.");
}

TEST_F(EngineApi, LogprobsAreThoseOfTheModel) {
  GenerateRequest request = greedy(question("Who wrote Emma?"), 3);
  request.logprobs = 4;
  const auto done = engine_->generate(request);
  ASSERT_TRUE(done);
  ASSERT_EQ(done->logprobs.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    const auto& row = done->logprobs[i];
    ASSERT_EQ(row.size(), 5u);
    EXPECT_EQ(row[0].token, done->tokens[i]);
    EXPECT_EQ(row[1].token, row[0].token) << "greedy takes the likeliest";
    EXPECT_LE(row[0].logprob, 0.0f);
    EXPECT_GE(row[1].logprob, row[2].logprob);
  }
  EXPECT_EQ(done->logprobs[0][0].bytes + done->logprobs[1][0].bytes + done->logprobs[2][0].bytes,
            done->text);
}

TEST_F(EngineApi, SameSeedSameTextAndPenaltiesAreChecked) {
  GenerateRequest request = greedy(question("Tell me a story."), 30);
  request.sampling.temperature = 1;
  request.sampling.seed = 42;
  const auto first = engine_->generate(request);
  const auto second = engine_->generate(request);
  EXPECT_EQ(first->tokens, second->tokens);
  EXPECT_EQ(first->seed, 42u);
  request.sampling.top_p = 2;
  EXPECT_FALSE(engine_->generate(request));
}

TEST_F(EngineApi, BadPromptsAreRefusedByNumber) {
  auto none = engine_->generate(greedy({}));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().what, "the prompt is empty");
  auto wrong = engine_->generate(greedy({1, 2, 999'999}));
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().what, HasSubstr("token 2 of the prompt is 999999"));
  EXPECT_FALSE(engine_->generate(greedy({-1})));
  EngineOptions small = options();
  small.context = 64;
  auto engine = Engine::open(small);
  ASSERT_TRUE(engine);
  auto longer = engine->generate(greedy(long_prompt(65)));
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().code, Code::kOutOfRange);
  EXPECT_THAT(longer.error().why, HasSubstr("65 tokens; the context holds 64"));
}

TEST_F(EngineApi, ScoresAreLikelihoodsOfWhatComesNext) {
  const auto prompt = long_prompt(400);
  const auto nll = engine_->score(prompt);
  ASSERT_TRUE(nll);
  ASSERT_EQ(nll->size(), 399u);
  for (const float value : *nll) EXPECT_GT(value, -1e-6f);
  GenerateRequest request = greedy({prompt.begin(), prompt.begin() + 399}, 1);
  request.logprobs = 3072;
  const auto done = engine_->generate(request);
  for (const TokenLogprob& each : done->logprobs[0]) {
    if (each.token != prompt[399]) continue;
    EXPECT_EQ(-each.logprob, nll->back()) << "one pass or two, the same bits";
  }
}

TEST_F(EngineApi, DenseIsNamedWarnedAboutAndDiffersBeyondTopK) {
  EngineOptions dense = options();
  dense.dense = true;
  auto engine = Engine::open(dense);
  ASSERT_TRUE(engine);
  EXPECT_TRUE(engine_->info().sparse);
  EXPECT_FALSE(engine->info().sparse);
  EXPECT_THAT(engine->info().warnings,
              ElementsAre(HasSubstr("dense attention on a model trained for sparse")));
  const auto prompt = long_prompt(600);
  const auto a = engine_->score(prompt);
  const auto b = engine->score(prompt);
  for (size_t i = 0; i < 255; ++i)
    ASSERT_EQ((*a)[i], (*b)[i]) << "below index_topk both read every key";
  EXPECT_NE(*a, *b);
}

TEST_F(EngineApi, AFileWithoutTopKIsDenseAndSaysWhichKey) {
  EngineOptions o = options();
  o.override_kv = {"glm-dsa.attention.indexer.top_k=int:0"};
  auto engine = Engine::open(o);
  ASSERT_TRUE(engine);
  EXPECT_FALSE(engine->info().sparse);
  EXPECT_THAT(engine->info().attention_reason, HasSubstr("glm-dsa.attention.indexer.top_k is 0"));
}

TEST(EngineOpen, AnOverrideOfAKeyTheFileLacksIsTold) {
  EngineOptions o = options();
  o.override_kv = {"glm-dsa.attention.indexer.topk=int:0"};
  const auto engine = Engine::open(o);
  ASSERT_TRUE(engine);
  EXPECT_TRUE(engine->info().sparse);
  EXPECT_THAT(engine->info().warnings,
              ElementsAre(HasSubstr("it has glm-dsa.attention.indexer.top_k")));
}

TEST(EngineOpen, ARefusedRowFormatShowsTheRulesOfEveryBackend) {
  EngineOptions o = options();
  o.kv_cache_dtype = "q8_0";
  const auto engine = Engine::open(o);
  ASSERT_FALSE(engine);
  const std::string text = engine.error().to_string();
  for (const char* part : {"cpu_simd", "cpu_reference", "found q8_0", "--kv-cache-dtype bf16"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(EngineOpen, ErrorsCarryAllFourSentences) {
  EngineOptions o = options();
  o.attention_backend = "cpu_simt";
  auto engine = Engine::open(o);
  ASSERT_FALSE(engine);
  EXPECT_THAT(engine.error().fix, HasSubstr("cpu_simd"));
  o = options();
  o.override_kv = {"general.architecture=str:llama"};
  engine = Engine::open(o);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, Code::kUnsupported);
  EXPECT_THAT(engine.error().to_string(), HasSubstr("'llama'"));
  EXPECT_THAT(engine.error().fix, HasSubstr("glm-dsa"));
  o = options();
  o.model += ".not-there";
  engine = Engine::open(o);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, Code::kNotFound);
}

TEST(EngineOpen, ABrokenTemplateLeavesRawPromptsUsable) {
  EngineOptions o = options();
  o.chat_template = "{% for m in messages %}";
  auto engine = Engine::open(o);
  ASSERT_TRUE(engine) << "only chat needs the template";
  const auto prompt = engine->chat_prompt({{.role = "user", .content = "x"}}, {});
  ASSERT_FALSE(prompt);
  EXPECT_THAT(prompt.error().fix, HasSubstr("--chat-template-file"));
  const auto raw =
      engine->tokenize("[gMASK]<sop><|user|>Who wrote Emma?<|assistant|></think>", true);
  ASSERT_TRUE(raw);
  EXPECT_EQ(engine->generate(greedy(*raw))->text, "Jane Austen wrote Emma.");
}

}  // namespace
}  // namespace topknot
