// No list keeps an entry that nothing can reach: on every machine of docs/devices, and on hosts of
// every level of instructions.
#include "plan/lists.h"

#include <gmock/gmock.h>

#include <set>

#include "base/strings.h"
#include "capability/device_facts.h"
#include "plan/operations.h"

namespace topknot::plan {
namespace {

using namespace capability;
using Fate = Standing::Fate;

std::vector<Facts> every_device() {
  std::vector<Facts> out;
  for (const std::string& name : device::machine_names()) {
    const auto machine = device::read_machine(name);
    EXPECT_TRUE(machine) << name;
    for (const char* kind : {"cpu", "cuda"}) {
      const auto target = choose_target(*machine, kind, 1);
      if (target) out.push_back(target_facts(*target));
    }
  }
  // Every shipped processor has AVX-512: the loops of the others must have a machine, too.
  for (const auto level : {InstructionLevel::kPortable, InstructionLevel::kAvx2}) {
    out.push_back(Facts().set(Fact::kDevice, DeviceKind::kCpu).set(Fact::kInstructions, level));
  }
  return out;
}

TEST(OperationLists, OnlyReferencesCannotWinAnywhere) {
  const attention::BackendList backends;
  const std::vector<Facts> devices = every_device();
  ASSERT_GE(devices.size(), 12u);
  for (const OperationList& list : operation_lists(backends)) {
    ASSERT_FALSE(list.entries.empty()) << list.operations;
    for (const Standing& dead : dead_entries(list.entries, devices)) {
      SCOPED_TRACE(cat(list.operations, ": ", dead.name));
      // What others are compared with is reached by its name only; a place that is kept for a
      // kernel to come must have a device that it would run on.
      const bool reference = dead.name == "reference" || dead.name == "cpu_reference";
      if (reference) {
        EXPECT_EQ(dead.fate, Fate::kShadowed);
      } else {
        EXPECT_EQ(dead.fate, Fate::kAbsent);
      }
    }
  }
}

TEST(OperationLists, AnEntryThatNothingReachesIsFound) {
  constexpr Rule kNowhere[] = {{Fact::kSm, exactly(61), "a card that no file describes"}};
  constexpr Rule kHost[] = {{Fact::kDevice, exactly(DeviceKind::kCpu), "a host"}};
  const ListEntry list[] = {{"first", kHost}, {"nowhere", kNowhere}, {"behind", kHost}};
  std::vector<Facts> devices = every_device();
  std::erase_if(devices, [](const Facts& each) { return !each[Fact::kSm]; });
  const auto on_cards = dead_entries(list, devices);
  ASSERT_EQ(on_cards.size(), 3u);
  EXPECT_EQ(on_cards[1].fate, Fate::kRefused);
  const auto dead = dead_entries(std::span(list).subspan(0, 3), every_device());
  EXPECT_EQ(dead.back().name, "behind");
  EXPECT_EQ(dead.back().by, "first");
}

TEST(OperationLists, NameEveryOperationOfAPlanAndNoEntryTwice) {
  const attention::BackendList backends;
  std::string all;
  for (const OperationList& list : operation_lists(backends)) {
    all += cat(list.operations, "; ");
    std::set<std::string_view> names;
    for (const ListEntry& each : list.entries) {
      EXPECT_TRUE(names.insert(each.name).second) << list.operations << ": " << each.name;
    }
  }
  for (const std::string_view name :
       {kIndexerScores, kTopK, kSlotMap, kCacheWriter, kNorms, kRope, kRouter, kSampling,
        kCollectives, std::string_view("attention"), std::string_view("linear")}) {
    EXPECT_THAT(all, testing::HasSubstr(std::string(name)));
  }
}

}  // namespace
}  // namespace topknot::plan
