#include "tokenizer/special_tokens.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace topknot::tokenizer {
namespace {

std::vector<std::pair<size_t, int32_t>> all_matches(const SpecialTokenSet& set,
                                                    std::string_view text) {
  std::vector<std::pair<size_t, int32_t>> out;
  size_t from = 0;
  while (const auto match = set.find(text, from)) {
    out.emplace_back(match->begin, match->id);
    from = match->begin + match->bytes;
  }
  return out;
}
using Matches = std::vector<std::pair<size_t, int32_t>>;

TEST(SpecialTokens, LeftmostThenLongest) {
  const SpecialTokenSet set({{"<a>", 1}, {"<a><b>", 2}, {"<b>", 3}, {"a><b>c", 4}});
  EXPECT_EQ(all_matches(set, "x<a>y"), (Matches{{1, 1}}));
  EXPECT_EQ(all_matches(set, "<a><b>c"), (Matches{{0, 2}}));
  EXPECT_EQ(all_matches(set, "<a><a><b>"), (Matches{{0, 1}, {3, 2}}));
  EXPECT_EQ(all_matches(set, "a><b>c<b>"), (Matches{{0, 4}, {6, 3}}));
  EXPECT_EQ(all_matches(set, "<a"), Matches{}) << "cut short";
}

TEST(SpecialTokens, AnEmptySetFindsNothing) {
  EXPECT_EQ(all_matches(SpecialTokenSet(), "anything"), Matches{});
  EXPECT_EQ(all_matches(SpecialTokenSet({{"x", 1}}), ""), Matches{});
}

TEST(SpecialTokens, BytesAboveAsciiAreOrderedAsUnsigned) {
  const SpecialTokenSet set(
      {{"<｜User｜>", 1}, {"<|user|>", 2}, {"｜", 3}, {"\xF0\x9F\x98\x80", 4}});
  EXPECT_EQ(all_matches(set, "<｜User｜><|user|>｜\xF0\x9F\x98\x80"),
            (Matches{{0, 1}, {12, 2}, {20, 3}, {23, 4}}));
}

TEST(SpecialTokens, AgreesWithTryingEveryTokenEverywhere) {
  std::mt19937 random(7);
  const auto word = [&](size_t longest) {
    std::string out(1 + random() % longest, 'a');
    for (char& c : out) c = static_cast<char>('a' + random() % 2);
    return out;
  };
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> texts;
    for (int i = 0; i < 12; ++i) texts.push_back(word(6));
    std::sort(texts.begin(), texts.end());
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    std::vector<SpecialTokenSet::Token> tokens;
    for (const std::string& text : texts)
      tokens.push_back({text, static_cast<int32_t>(tokens.size())});
    const SpecialTokenSet set(tokens);
    const std::string text = word(40);
    Matches expected;
    for (size_t at = 0; at < text.size();) {
      const SpecialTokenSet::Token* best = nullptr;
      for (const auto& token : tokens) {
        const bool here = text.compare(at, token.text.size(), token.text) == 0;
        if (here && (!best || token.text.size() > best->text.size())) best = &token;
      }
      if (best) expected.emplace_back(at, best->id);
      at += best ? best->text.size() : 1;
    }
    EXPECT_EQ(all_matches(set, text), expected) << text;
  }
}

}  // namespace
}  // namespace topknot::tokenizer
