#include "capability/facts.h"

#include <gtest/gtest.h>

#include <set>

#include "capability/device_facts.h"

namespace topknot::capability {
namespace {

TEST(Facts, EveryFactHasANameOfItsOwnThatFindsIt) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kFactCount; ++i) {
    const auto fact = static_cast<Fact>(i);
    EXPECT_FALSE(fact_name(fact).empty()) << i;
    EXPECT_TRUE(names.insert(fact_name(fact)).second) << fact_name(fact);
    EXPECT_EQ(fact_from_name(fact_name(fact)), fact);
  }
  EXPECT_FALSE(fact_from_name("no_such_fact"));
}

TEST(Facts, ValuesAreShownByName) {
  EXPECT_EQ(fact_value(Fact::kKvFormat, static_cast<int64_t>(KvFormat::kFp8E4m3)), "fp8_e4m3");
  EXPECT_EQ(fact_value(Fact::kArchitecture, static_cast<int64_t>(Architecture::kGlmDsa)),
            "glm-dsa");
  EXPECT_EQ(fact_value(Fact::kWeights, static_cast<int64_t>(WeightFormat::kSafetensors)),
            "safetensors");
  EXPECT_EQ(fact_value(Fact::kHeads, 8), "8");
  EXPECT_EQ(fact_value(Fact::kKvFormat, 99), "99");
}

TEST(DeviceFacts, UnknownNumbersStayUnset) {
  device::DeviceFacts device;
  device.kind = DeviceKind::kCuda;
  device.sm = 120;
  const Facts facts = device_facts(device);
  EXPECT_EQ(facts[Fact::kSm], 120);
  EXPECT_EQ(facts[Fact::kDevice], static_cast<int64_t>(DeviceKind::kCuda));
  EXPECT_FALSE(facts[Fact::kSmemPerBlock]);
}

}  // namespace
}  // namespace topknot::capability
