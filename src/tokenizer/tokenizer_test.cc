#include "tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/strings.h"
#include "tokenizer/test_vocab.h"

namespace topknot::tokenizer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<int32_t>;

Tokenizer make(const TestVocab& vocab) {
  auto tokenizer = Tokenizer::create(vocab.data);
  if (!tokenizer) ADD_FAILURE() << tokenizer.error().to_string();
  return std::move(tokenizer).value();
}

Ids encode(const Tokenizer& tokenizer, std::string_view text,
           ParseSpecial parse_special = ParseSpecial::kYes) {
  auto ids = tokenizer.encode(text, parse_special);
  if (!ids) ADD_FAILURE() << ids.error().to_string();
  return ids ? *ids : Ids{};
}

Error refusal(const TokenizerData& data) {
  auto tokenizer = Tokenizer::create(data);
  EXPECT_FALSE(tokenizer.has_value());
  return tokenizer ? Error{} : tokenizer.error();
}

TEST(Tokenizer, MergesWithinPiecesOnly) {
  TestVocab vocab;
  vocab.merge("h", "e");
  const int32_t hell = (vocab.merge("l", "l"), vocab.merge("he", "ll"));
  const int32_t o_space = vocab.merge("o", " ");
  const Tokenizer tokenizer = make(vocab);
  EXPECT_THAT(encode(tokenizer, "hello hell"), ElementsAre(hell, 'o', ' ', hell))
      << "'o ' would cross a piece";
  EXPECT_EQ(tokenizer.token_bytes(o_space), "o ");
}

TEST(Tokenizer, EveryCodePointOfOneByteRoundTrips) {
  for (const PreTokenizerSpec& spec : pre_tokenizer_specs()) {
    const TestVocab vocab{std::string(spec.name)};
    const Tokenizer tokenizer = make(vocab);
    for (uint32_t c = 0; c < 256; ++c) {
      std::string text;
      append_utf8(&text, c);
      EXPECT_EQ(tokenizer.decode(encode(tokenizer, text), false), text) << spec.name << " " << c;
    }
    for (int32_t byte = 0; byte < 256; ++byte) {
      EXPECT_EQ(tokenizer.token_bytes(byte), std::string(1, static_cast<char>(byte)));
    }
  }
}

TEST(Tokenizer, TextsRoundTripUnderEveryPreTokenizer) {
  const std::string zwj = "\U0001F469\u200D\U0001F469\u200D\U0001F467\U0001F1E9\U0001F1EA";
  const std::vector<std::string> texts = {"",
                                          " ",
                                          "   \n\n \t\r\n",
                                          "1234567",
                                          "don't DON'T",
                                          "a\u00A0\u00A0b",
                                          zwj,
                                          "中文mixed漢字かな한국어",
                                          "\u0085\u2028x",
                                          "\uFFFD\uFFFE",
                                          std::string("nul\0nul", 7)};
  for (const PreTokenizerSpec& spec : pre_tokenizer_specs()) {
    TestVocab vocab{std::string(spec.name)};
    vocab.merge(" ", " ");
    vocab.merge("\xF0", "\x9F");
    vocab.merge("\xB8", "\xAD");
    const Tokenizer tokenizer = make(vocab);
    for (const std::string& text : texts) {
      EXPECT_EQ(tokenizer.decode(encode(tokenizer, text), false), text) << spec.name;
    }
  }
}

TEST(Tokenizer, IgnoreMergesTakesAWholePieceThatIsAToken) {
  for (const auto& [pre, whole] : {std::pair{"llama-bpe", true}, {"glm4", false}}) {
    TestVocab vocab(pre);
    const int32_t cat_token = vocab.add("cat", TokenType::kNormal);
    vocab.add("dog", TokenType::kControl);
    const Tokenizer tokenizer = make(vocab);
    EXPECT_EQ(encode(tokenizer, "cat"), whole ? Ids{cat_token} : (Ids{'c', 'a', 't'})) << pre;
    EXPECT_EQ(encode(tokenizer, "dog", ParseSpecial::kNo), (Ids{'d', 'o', 'g'}))
        << "plain text must not become a control token";
  }
}

TEST(Tokenizer, PlainTextRecognisesUserDefinedTokensOnly) {
  TestVocab vocab;
  const int32_t user = vocab.add("<|user|>", TokenType::kControl);
  const int32_t unknown = vocab.add("<unk>", TokenType::kUnknown);
  const int32_t think = vocab.add("<think>", TokenType::kUserDefined);
  vocab.add("[PAD0]", TokenType::kUnused);
  const Tokenizer tokenizer = make(vocab);
  EXPECT_EQ(encode(tokenizer, "<|user|>a<think><unk>"), (Ids{user, 'a', think, unknown}));
  const std::string plain = "<|user|>a<think><unk>[PAD0]";
  const Ids ids = encode(tokenizer, plain, ParseSpecial::kNo);
  EXPECT_EQ(std::count(ids.begin(), ids.end(), think), 1);
  EXPECT_EQ(std::count_if(ids.begin(), ids.end(), [](int32_t id) { return id >= 256; }), 1);
  EXPECT_EQ(tokenizer.decode(ids, false), plain);
}

TEST(Tokenizer, ControlTokensAreShownOnRequestAndNeverByteDecoded) {
  TestVocab vocab;
  const int32_t control = vocab.add("<｜end▁of▁sentence｜>", TokenType::kControl);
  const int32_t user_defined = vocab.add("Ġø", TokenType::kUserDefined);
  const int32_t normal = vocab.add("Ġ｜", TokenType::kNormal);
  const Tokenizer tokenizer = make(vocab);
  EXPECT_EQ(tokenizer.piece(control, false), "");
  EXPECT_EQ(tokenizer.piece(control, true), "<｜end▁of▁sentence｜>");
  EXPECT_EQ(tokenizer.piece(user_defined, false), "Ġø") << "plain text as it is";
  EXPECT_EQ(tokenizer.piece(normal, false), " ｜") << "outside the alphabet: kept";
  EXPECT_EQ(tokenizer.decode(Ids{'a', control, -1, 1 << 30}, false), "a\uFFFD\uFFFD");
}

TEST(Tokenizer, StopIdsAreTheThreeAndTheKnownTexts) {
  TestVocab vocab;
  const int32_t end = vocab.add("<|endoftext|>", TokenType::kControl);
  const int32_t user = vocab.add("<|user|>", TokenType::kControl);
  const int32_t observation = vocab.add("<|observation|>", TokenType::kUserDefined);
  const int32_t own = vocab.add("<own-end>", TokenType::kControl);
  vocab.add("[EOS]", TokenType::kNormal);
  vocab.add("<|assistant|>", TokenType::kControl);
  vocab.data.eos = own;
  vocab.data.eot = user;
  const Tokenizer tokenizer = make(vocab);
  EXPECT_THAT(tokenizer.stop_ids(), ElementsAre(end, user, observation, own));
  EXPECT_TRUE(tokenizer.is_stop(user));
  EXPECT_FALSE(tokenizer.is_stop('a'));
}

TEST(Tokenizer, BosIsAddedOnce) {
  TestVocab vocab("deepseek-v3");
  const int32_t bos = vocab.add("<｜begin▁of▁sentence｜>", TokenType::kControl);
  vocab.data.bos = bos;
  Ids ids = {'a'};
  make(vocab).prepend_bos(&ids);
  EXPECT_EQ(ids, Ids{'a'}) << "absent means no for this family";
  vocab.data.add_bos = true;
  const Tokenizer tokenizer = make(vocab);
  tokenizer.prepend_bos(&ids);
  tokenizer.prepend_bos(&ids);
  EXPECT_EQ(ids, (Ids{bos, 'a'}));
  ids.clear();
  tokenizer.prepend_bos(&ids);
  EXPECT_EQ(ids, Ids{bos});
  EXPECT_EQ(encode(tokenizer, "a"), Ids{'a'}) << "encode adds nothing";
}

TEST(Tokenizer, LlamaAddsBosUnlessTheFileSaysNo) {
  TestVocab vocab("llama-bpe");
  EXPECT_FALSE(make(vocab).add_bos()) << "no BOS named";
  vocab.data.bos = 5;
  EXPECT_TRUE(make(vocab).add_bos());
  vocab.data.add_bos = false;
  EXPECT_FALSE(make(vocab).add_bos());
}

TEST(Tokenizer, UnusedIdsAndThoseBeyondTheVocabularyAreToBeMasked) {
  TestVocab vocab;
  const int32_t pad = vocab.add("[PAD256]", TokenType::kUnused);
  const Tokenizer tokenizer = make(vocab);
  EXPECT_EQ(tokenizer.vocab_size(), 257);
  EXPECT_TRUE(tokenizer.is_unused(pad));
  EXPECT_TRUE(tokenizer.is_unused(257));
  EXPECT_TRUE(tokenizer.is_unused(-1));
  EXPECT_FALSE(tokenizer.is_unused(0));
  EXPECT_EQ(tokenizer.find("[PAD256]"), pad);
  EXPECT_EQ(tokenizer.find("no such"), std::nullopt);
}

TEST(Tokenizer, BadTextIsRefused) {
  const TestVocab vocab;
  const Tokenizer tokenizer = make(vocab);
  const auto invalid = tokenizer.encode("abc\xED\xA0\x80", ParseSpecial::kNo);
  ASSERT_FALSE(invalid.has_value());
  EXPECT_EQ(invalid.error().code, Code::kCorrupt);
  EXPECT_EQ(invalid.error().where, "byte 3");
  const auto long_text = tokenizer.encode(std::string(kMaxTextBytes + 1, 'a'), ParseSpecial::kNo);
  ASSERT_FALSE(long_text.has_value());
  EXPECT_EQ(long_text.error().code, Code::kOutOfRange);
}

TEST(Tokenizer, LongRunsRoundTrip) {
  TestVocab vocab;
  vocab.merge("a", "a");
  vocab.merge(" ", " ");
  vocab.merge("  ", "  ");
  vocab.add("<|user|>", TokenType::kControl);
  const Tokenizer tokenizer = make(vocab);
  for (const char c : {'a', ' ', '<', '\n'}) {
    const std::string text(1 << 20, c);
    EXPECT_EQ(tokenizer.decode(encode(tokenizer, text), false), text);
  }
  EXPECT_EQ(encode(tokenizer, std::string(1 << 20, 'a')).size(), size_t{1} << 19);
  EXPECT_EQ(encode(tokenizer, std::string(1 << 20, ' ')).size(), size_t{1} << 18);
}

TEST(Tokenizer, ThreadsMayShareOne) {
  TestVocab vocab("deepseek-v3");
  vocab.merge("t", "h");
  const Tokenizer tokenizer = make(vocab);
  const std::string text = "the thing, 12345 and 中文 \n\n that";
  const Ids expected = encode(tokenizer, text);
  std::vector<Ids> found(4);
  std::vector<std::thread> threads;
  for (Ids& ids : found) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) ids = *tokenizer.encode(text, ParseSpecial::kYes);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Ids& ids : found) EXPECT_EQ(ids, expected);
}

TEST(TokenizerRefusals, UnknownKindsAreNamedWithTheKnownOnes) {
  TestVocab vocab;
  vocab.data.model = "llama";
  EXPECT_EQ(refusal(vocab.data).code, Code::kUnsupported);
  EXPECT_THAT(refusal(vocab.data).what, HasSubstr("'llama'"));
  EXPECT_THAT(refusal(vocab.data).why, HasSubstr("gpt2"));
  vocab.data.model = "gpt2";
  vocab.data.pre = "glm5";
  EXPECT_THAT(refusal(vocab.data).what, HasSubstr("'glm5'"));
  EXPECT_THAT(refusal(vocab.data).why, HasSubstr("glm4"));
}

TEST(TokenizerRefusals, Merges) {
  const struct {
    const char* merge;
    const char* what;
  } cases[] = {{"ab", "not two tokens"},
               {"a b c", "not two tokens"},
               {" b", "not two tokens"},
               {"a ", "not two tokens"},
               {"", "not two tokens"},
               {"a b", "'ab', which is no token"},
               {"zz b", "'zz', which is no token"},
               {"x y", "given twice"}};
  for (const auto& [merge, what] : cases) {
    TestVocab vocab;
    vocab.merge("x", "y");
    vocab.data.merges.push_back(merge);
    const Error error = refusal(vocab.data);
    EXPECT_EQ(error.code, Code::kCorrupt);
    EXPECT_THAT(error.what, HasSubstr(what)) << merge;
    EXPECT_EQ(error.where, "tokenizer.ggml.merges[1]");
  }
}

TEST(TokenizerRefusals, PlainTextCannotSpellASpecialToken) {
  TestVocab merged;
  merged.merge("a", "b");
  merged.data.types.back() = TokenType::kControl;
  EXPECT_THAT(refusal(merged.data).what, HasSubstr("special token 'ab'"));
  TestVocab byte;
  byte.data.types['a'] = TokenType::kControl;
  EXPECT_THAT(refusal(byte.data).why, HasSubstr("the first is 97"));
}

TEST(TokenizerRefusals, Tokens) {
  TestVocab twins;
  twins.add("a", TokenType::kControl);
  EXPECT_THAT(refusal(twins.data).what, HasSubstr("two tokens have the text 'a'"));
  TestVocab binary;
  binary.add("x\xFF", TokenType::kNormal);
  EXPECT_THAT(refusal(binary.data).what, HasSubstr("not UTF-8"));
  EXPECT_EQ(refusal(binary.data).where, "tokenizer.ggml.tokens[256]");
  TestVocab odd;
  odd.add("odd", static_cast<TokenType>(7));
  EXPECT_THAT(refusal(odd.data).why, HasSubstr("found 7"));
  TestVocab long_one;
  long_one.add(std::string(kMaxSpecialBytes + 1, 'x'), TokenType::kControl);
  EXPECT_EQ(refusal(long_one.data).code, Code::kOutOfRange);
  TestVocab incomplete;
  incomplete.data.tokens[0x41] = "nothing";
  EXPECT_THAT(refusal(incomplete.data).why,
              HasSubstr("1 bytes have no ordinary token, the first is 65"));
  TestVocab few_types;
  few_types.data.types.pop_back();
  EXPECT_THAT(refusal(few_types.data).why, HasSubstr("256 tokens, 255 types"));
  EXPECT_THAT(refusal({.model = "gpt2", .pre = "glm4"}).what, HasSubstr("empty"));
}

TEST(TokenizerRefusals, NamedIds) {
  TestVocab vocab;
  vocab.data.eom = 256;
  EXPECT_EQ(refusal(vocab.data).where, "tokenizer.ggml.eom_token_id");
  vocab.data.eom = -1;
  EXPECT_EQ(refusal(vocab.data).code, Code::kCorrupt);
  vocab.data.eom = std::nullopt;
  vocab.data.add_bos = true;
  EXPECT_THAT(refusal(vocab.data).what, HasSubstr("BOS"));
  vocab.data.add_bos = false;
  vocab.data.add_eos = true;
  EXPECT_THAT(refusal(vocab.data).what, HasSubstr("EOS"));
}

TEST(Tokenizer, TokensWithoutTextOrBytesThatUtf8NeverHasAreNoFault) {
  TestVocab vocab;
  vocab.add("", TokenType::kUnused);
  vocab.add("", TokenType::kUnused);
  vocab.data.tokens[0xC0] = "[PAD192]";
  EXPECT_TRUE(Tokenizer::create(vocab.data).has_value());
}

}  // namespace
}  // namespace topknot::tokenizer
