#include "attention/registry.h"

#include <gmock/gmock.h>

namespace topknot::attention {
namespace {

using namespace capability;

Facts asked(KvFormat format, DeviceKind device = DeviceKind::kCpu) {
  return Facts()
      .set(Fact::kDevice, device)
      .set(Fact::kSelection, Selection::kSparse)
      .set(Fact::kHeads, 64)
      .set(Fact::kKvLoraRank, 512)
      .set(Fact::kQkRopeHeadDim, 64)
      .set(Fact::kTopk, 2048)
      .set(Fact::kKvFormat, format)
      .set(Fact::kPageTokens, 64);
}

TEST(Registry, TheFirstOfBackendsDefThatRunsIsChosen) {
  const Choice choice = select_backend(asked(KvFormat::kBf16));
  ASSERT_TRUE(choice.chosen.has_value());
  EXPECT_EQ(chosen_backend(choice).name, "cpu_simd");
}

TEST(Registry, AForcedNameIsTakenOrRefusedNeverReplaced) {
  EXPECT_EQ(chosen_backend(select_backend(asked(KvFormat::kF32), "cpu_reference")).name,
            "cpu_reference");
  EXPECT_FALSE(select_backend(asked(KvFormat::kQ8_0), "cpu_simd").chosen.has_value());
}

TEST(Registry, ARefusedRequestPrintsEveryBrokenRuleOfEveryBackend) {
  const Facts facts = asked(KvFormat::kFp8Ds, DeviceKind::kCuda);
  const Choice choice = select_backend(facts);
  ASSERT_FALSE(choice.chosen.has_value());
  const std::string text = refused(choice, facts, {}).to_string();
  for (const RegistryEntry& entry : registry()) {
    EXPECT_THAT(text, testing::HasSubstr(std::string(entry.name)));
  }
  EXPECT_THAT(text, testing::HasSubstr("kv_format: needs one of f32, bf16, found fp8_ds"));
  EXPECT_THAT(text, testing::HasSubstr("try --kv-cache-dtype bf16"));
  EXPECT_THAT(text, testing::HasSubstr("device: needs exactly cpu, found cuda"));
}

}  // namespace
}  // namespace topknot::attention
