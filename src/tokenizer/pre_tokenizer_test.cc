#include "tokenizer/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/strings.h"

namespace topknot::tokenizer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Pieces = std::vector<std::string_view>;

Pieces pieces_of(std::string_view pre, std::string_view text) {
  auto pieces = pre_tokenize(pre, text);
  EXPECT_TRUE(pieces.has_value()) << pieces.error().to_string();
  return pieces ? *pieces : Pieces{};
}

TEST(PreTokenizer, EveryKnownNameCompilesAndKeepsTheText) {
  const std::string text = "Hello wörld 12345, don't\r\n\r\n  中文かな \t x  ";
  for (const PreTokenizerSpec& spec : pre_tokenizer_specs()) {
    std::string joined;
    for (const std::string_view piece : pieces_of(spec.name, text)) {
      EXPECT_FALSE(piece.empty());
      joined += piece;
    }
    EXPECT_EQ(joined, text) << spec.name;
    EXPECT_THAT(pieces_of(spec.name, ""), ElementsAre());
  }
}

TEST(PreTokenizer, Glm4) {
  for (const std::string_view pre : {"glm4", "chatglm-bpe", "llama-bpe", "llama3", "llama-v3"}) {
    EXPECT_THAT(pieces_of(pre, "Hello, world!"), ElementsAre("Hello", ",", " world", "!")) << pre;
    EXPECT_THAT(pieces_of(pre, "don't DON'T"), ElementsAre("don", "'t", " DON", "'T"));
    EXPECT_THAT(pieces_of(pre, "1234567"), ElementsAre("123", "456", "7"));
    EXPECT_THAT(pieces_of(pre, "a   b"), ElementsAre("a", "  ", " b"));
    EXPECT_THAT(pieces_of(pre, "a  \n\n  b"), ElementsAre("a", "  \n\n", " ", " b"));
    EXPECT_THAT(pieces_of(pre, "x = {\r\n\ty"), ElementsAre("x", " =", " {\r\n", "\ty"));
    EXPECT_THAT(pieces_of(pre, "end   "), ElementsAre("end", "   "));
  }
}

TEST(PreTokenizer, Qwen2TakesDigitsOneByOne) {
  EXPECT_THAT(pieces_of("qwen2", "a 123"), ElementsAre("a", " ", "1", "2", "3"));
  EXPECT_THAT(pieces_of("qwen2", "I'LL go\n"), ElementsAre("I", "'LL", " go", "\n"));
}

TEST(PreTokenizer, Gpt2KeepsNumbersWholeAndContractionsCaseSensitive) {
  EXPECT_THAT(pieces_of("gpt-2", "don't DON'T 1234567"),
              ElementsAre("don", "'t", " DON", "'", "T", " 1234567"));
  EXPECT_THAT(pieces_of("gpt-2", "a\n\nb"), ElementsAre("a", "\n", "\n", "b"));
}

TEST(PreTokenizer, DeepSeekV3) {
  EXPECT_THAT(pieces_of("deepseek-v3", "1234567"), ElementsAre("123", "456", "7"));
  EXPECT_THAT(pieces_of("deepseek-v3", "Hi, 世界 かな!"),
              ElementsAre("Hi", ",", " ", "世界", " ", "かな", "!"));
  EXPECT_THAT(pieces_of("deepseek-v3", "don't x_y (z"),
              ElementsAre("don", "'t", " x", "_y", " (", "z"));
  EXPECT_THAT(pieces_of("deepseek-v3", "a ;\n\n b"), ElementsAre("a", " ;\n\n", " b"));
  // A control character is in none of the classes: a gap before digits, the prefix of a word.
  EXPECT_THAT(pieces_of("deepseek-v3",
                        "\x01"
                        "1\x01z"),
              ElementsAre("\x01", "1", "\x01z"));
}

TEST(PreTokenizer, DeepSeekLlm) {
  EXPECT_THAT(pieces_of("deepseek-llm", "Hello world\n\n12 中文"),
              ElementsAre("Hello", " world", "\n", "\n", "12", " ", "中文"));
  EXPECT_THAT(pieces_of("deepseek-llm", "don't (x)"), ElementsAre("don", "'", "t", " (", "x", ")"));
  EXPECT_THAT(pieces_of("deepseek-llm", "a   b   "), ElementsAre("a", "  ", " b", "   "));
  EXPECT_THAT(pieces_of("deepseek-llm", "“한국어” ９"), ElementsAre("“", "한국어", "”", " ", "９"));
  EXPECT_THAT(pieces_of("deepseek-llm", "ա"), ElementsAre("ա"));  // U+0561, outside every list
}

TEST(PreTokenizer, KimiK2SplitsAtCaseAndAtHan) {
  EXPECT_THAT(pieces_of("kimi-k2", "helloWorld HTTPServer"),
              ElementsAre("hello", "World", " HTTPServer"));
  EXPECT_THAT(pieces_of("kimi-k2", "ABC中文def"), ElementsAre("ABC", "中文", "def"));
  EXPECT_THAT(pieces_of("kimi-k2", "don't You'LL 1234"),
              ElementsAre("don't", " You'LL", " ", "123", "4"));
  EXPECT_THAT(pieces_of("kimi-k2", "ひらがな漢字々。"), ElementsAre("ひらがな", "漢字々", "。"));
  // U+30FC is shared by scripts and used with Han: the script itself is Common, so it is a letter.
  EXPECT_THAT(pieces_of("kimi-k2", "漢ー"), ElementsAre("漢", "ー"));
}

TEST(PreTokenizer, WhiteSpaceIsTheUnicodeProperty) {
  for (const std::string_view space :
       {"\t", "\x0B", "\x0C", "\u0085", "\u00A0", "\u1680", "\u2000", "\u200A", "\u2028", "\u2029",
        "\u202F", "\u205F", "\u3000"}) {
    // All but the last before a visible character; a space other than ' ' does not join a number.
    const std::string text = cat("1", space, space, space, "1");
    const std::string two = cat(space, space);
    EXPECT_THAT(pieces_of("gpt-2", text), ElementsAre("1", two, space, "1")) << printable(space);
  }
}

TEST(PreTokenizer, WhatOnlyLooksLikeWhiteSpaceIsNot) {
  // White space in old versions of Unicode, in C's isspace, in str.isspace of Python.
  for (const std::string_view other : {"\u180E", "\u200B", "\uFEFF", "\x1C", "\x1F"}) {
    const std::string text = cat("1", other, other, "1");
    const std::string both = cat(other, other);
    EXPECT_THAT(pieces_of("gpt-2", text), ElementsAre("1", both, "1")) << printable(other);
  }
}

TEST(PreTokenizer, AgreesWithThePublishedPatternsOnRandomText) {
  std::ifstream in(TOPKNOT_SOURCE_DIR "/tests/data/pretokenizer_cases.json");
  const auto file = nlohmann::json::parse(in);
  size_t compared = 0;
  for (const auto& one : file.at("cases")) {
    const auto text = one.at("text").get<std::string>();
    for (const auto& [pre, lengths] : one.at("piece_bytes").items()) {
      std::vector<size_t> found;
      for (const std::string_view piece : pieces_of(pre, text)) found.push_back(piece.size());
      EXPECT_EQ(found, lengths.get<std::vector<size_t>>()) << pre << ": " << text;
      ++compared;
    }
  }
  EXPECT_GE(compared, 1000u);
}

// Runs of one character are where a backtracking matcher turns quadratic or exhausts its stack.
TEST(PreTokenizer, LongRunsAreOnePieceOrRegularOnes) {
  constexpr size_t kRun = 3 << 20;
  for (const PreTokenizerSpec& spec : pre_tokenizer_specs()) {
    for (const char c : {'a', 'A', ' ', '\n', '!', '1'}) {
      const std::string run(kRun, c);
      const std::string text = cat("x", run, "y");
      size_t bytes = 0;
      for (const std::string_view piece : pieces_of(spec.name, text)) bytes += piece.size();
      EXPECT_EQ(bytes, text.size()) << spec.name << " on runs of " << static_cast<int>(c);
    }
    const std::string spaces(kRun, ' ');
    EXPECT_EQ(pieces_of(spec.name, spaces).size(), 1u) << spec.name;
    EXPECT_EQ(pieces_of(spec.name, std::string(kRun, 'a')).size(), 1u) << spec.name;
  }
}

TEST(PreTokenizer, UnknownNamesAreRefusedWithTheKnownOnes) {
  const auto refused = PreTokenizer::create("deepseek-v33");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kUnsupported);
  EXPECT_THAT(refused.error().what, HasSubstr("deepseek-v33"));
  for (const PreTokenizerSpec& spec : pre_tokenizer_specs()) {
    EXPECT_THAT(refused.error().why, HasSubstr(std::string(spec.name)));
  }
  EXPECT_THAT(refused.error().fix, HasSubstr("'deepseek-v3'"));
}

TEST(PreTokenizer, InvalidUtf8IsRefused) {
  const auto refused = pre_tokenize("glm4", "ab\xFFz");
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().where, "byte 2");
}

}  // namespace
}  // namespace topknot::tokenizer
