#include "capability/standing.h"

#include <gtest/gtest.h>

namespace topknot::capability {
namespace {

using Fate = Standing::Fate;

constexpr Rule kHopper[] = {{Fact::kSm, exactly(90), "a"}, {Fact::kHeads, at_most(64), "b"}};
constexpr Rule kNarrow[] = {{Fact::kSm, at_least(80), "a"}, {Fact::kHeads, one_of(8, 64), "b"}};
constexpr Rule kWide[] = {{Fact::kSm, at_least(80), "a"}};
constexpr Rule kHuge[] = {{Fact::kSmemPerBlock, at_least(300000), "a"}};
const ListEntry kList[] = {
    {"hopper", kHopper}, {"narrow", kNarrow}, {"wide", kWide}, {"huge", kHuge}};

Facts card(int sm, int64_t shared) {
  return Facts().set(Fact::kSm, sm).set(Fact::kSmemPerBlock, shared);
}

TEST(Standing, RefusedShadowedOrAbleToWin) {
  const auto on_90 = standings(kList, card(90, 232448));
  EXPECT_EQ(on_90[0].fate, Fate::kCanWin);
  EXPECT_EQ(on_90[1].fate, Fate::kShadowed) << "8 and 64 heads are at most 64";
  EXPECT_EQ(on_90[1].by, "hopper");
  EXPECT_EQ(on_90[2].fate, Fate::kCanWin) << "more than 64 heads";
  EXPECT_EQ(on_90[3].fate, Fate::kRefused);
  EXPECT_EQ(on_90[3].refusals.at(0).needed, "at least 300000");

  const auto on_120 = standings(kList, card(120, 101376));
  EXPECT_EQ(on_120[0].fate, Fate::kRefused);
  EXPECT_EQ(on_120[1].fate, Fate::kCanWin);
}

TEST(Standing, DeadIsWhatWinsNowhere) {
  const Facts both[] = {card(90, 232448), card(120, 101376)};
  const auto dead = dead_entries(kList, both);
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_EQ(dead[0].name, "huge");
  const auto on_hopper = dead_entries(kList, std::span(both, 1));
  ASSERT_EQ(on_hopper.size(), 2u);
  EXPECT_EQ(on_hopper[0].by, "hopper");
}

TEST(Standing, WhatIsAbsentKeepsItsPlaceAndShadowsNothing) {
  const Missing missing = {"not written", "another"};
  const ListEntry list[] = {entry_of({"later", "to come", kWide, &missing}), {"now", kWide}};
  const auto on_90 = standings(list, card(90, 232448));
  EXPECT_EQ(on_90[0].fate, Fate::kAbsent);
  EXPECT_EQ(on_90[0].refusals.at(0).found, "none in this version");
  EXPECT_EQ(on_90[1].fate, Fate::kCanWin);
  EXPECT_EQ(standings(list, card(75, 65536))[0].fate, Fate::kRefused);
  const Facts devices[] = {card(75, 65536), card(90, 232448)};
  const auto dead = dead_entries(list, devices);
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_EQ(dead[0].fate, Fate::kAbsent) << "where its rules hold, only the kernel is missing";
}

TEST(Standing, AnUnknownFactOfADeviceRefusesNothing) {
  EXPECT_EQ(standings(std::span(kList).last(1), Facts().set(Fact::kSm, 90))[0].fate, Fate::kCanWin);
}

TEST(Implies, OnlyWhereItIsCertain) {
  EXPECT_TRUE(implies(one_of(8, 64), at_most(64)));
  EXPECT_FALSE(implies(one_of(8, 128), at_most(64)));
  EXPECT_TRUE(implies(exactly(64), multiple_of(16)));
  EXPECT_TRUE(implies(at_least(90), at_least(80)));
  EXPECT_FALSE(implies(at_least(80), at_least(90)));
  EXPECT_TRUE(implies(between(90, 100), at_most(100)));
  EXPECT_FALSE(implies(between(90, 101), at_most(100)));
  EXPECT_TRUE(implies(between(90, 95), between(80, 100)));
  EXPECT_TRUE(implies(multiple_of(64), multiple_of(16)));
  EXPECT_FALSE(implies(multiple_of(16), multiple_of(64)));
  EXPECT_TRUE(implies(at_most(4), at_most(8)));
  EXPECT_FALSE(implies(at_most(8), one_of(1, 2, 3)));
}

}  // namespace
}  // namespace topknot::capability
