#include "capability/rules.h"

#include <gmock/gmock.h>

namespace topknot::capability {
namespace {

constexpr Rule kRules[] = {
    {Fact::kHeads, at_most(128), "the tile holds 128 heads", "--tensor-parallel-size 2"},
    {Fact::kKvFormat, one_of(KvFormat::kF32, KvFormat::kBf16), "no other load path",
     "--kv-cache-dtype bf16"},
    {Fact::kKvLoraRank, multiple_of(16), "vectors of 16"},
};

Facts asked(int64_t heads, KvFormat format) {
  return Facts().set(Fact::kHeads, heads).set(Fact::kKvFormat, format).set(Fact::kKvLoraRank, 512);
}

TEST(Rules, EveryBrokenRuleIsReportedNotOnlyTheFirst) {
  const auto found = refusals(kRules, asked(256, KvFormat::kQ8_0));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].needed, "at most 128");
  EXPECT_EQ(found[0].found, "256");
  EXPECT_EQ(found[1].what, "kv_format");
  EXPECT_EQ(found[1].needed, "one of f32, bf16");
  EXPECT_EQ(found[1].found, "q8_0");
  EXPECT_EQ(found[1].remedy, "--kv-cache-dtype bf16");
}

TEST(Rules, AFactNobodyStatedBreaksTheRule) {
  const auto found = refusals(kRules, Facts().set(Fact::kHeads, 8));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].found, "unknown");
}

TEST(Rules, BoundsAreInclusive) {
  EXPECT_TRUE(holds(at_most(128), 128));
  EXPECT_FALSE(holds(at_most(128), 129));
  EXPECT_TRUE(holds(at_least(80), 80));
  EXPECT_FALSE(holds(exactly(90), 120));
  EXPECT_TRUE(holds(multiple_of(16), 0));
  EXPECT_FALSE(holds(multiple_of(16), 24));
  EXPECT_TRUE(holds(between(90, 109), 90));
  EXPECT_TRUE(holds(between(90, 109), 109));
  EXPECT_FALSE(holds(between(90, 109), 110));
  EXPECT_EQ(accepts_string(Fact::kSm, between(90, 109)), "from 90 to 109");
}

std::vector<Candidate> candidates() {
  return {{"first", refusals(kRules, asked(256, KvFormat::kBf16))},
          {"second", refusals(kRules, asked(8, KvFormat::kBf16))},
          {"third", {}}};
}

TEST(Choose, TakesTheFirstThatRuns) {
  const Choice choice = choose("attention", candidates());
  ASSERT_TRUE(choice.chosen.has_value());
  EXPECT_EQ(*choice.chosen, 1u);
}

TEST(Choose, AForcedNameThatRefusesIsNeverReplaced) {
  const Choice choice = choose("attention", candidates(), "first");
  EXPECT_FALSE(choice.chosen.has_value());
  const Error error = refused(choice, asked(256, KvFormat::kBf16), "first");
  EXPECT_EQ(error.code, Code::kUnsupported);
  EXPECT_THAT(error.to_string(), testing::HasSubstr("'first' cannot run attention"));
  EXPECT_THAT(error.to_string(), testing::HasSubstr("needs at most 128, found 256"));
  EXPECT_THAT(error.to_string(), testing::HasSubstr("try --tensor-parallel-size 2"));
}

TEST(Choose, AMisspeltNameGetsTheNearest) {
  const Choice choice = choose("attention", candidates(), "secnd");
  EXPECT_FALSE(choice.chosen.has_value());
  EXPECT_THAT(refused(choice, Facts(), "secnd").fix, testing::HasSubstr("did you mean 'second'?"));
}

}  // namespace
}  // namespace topknot::capability
