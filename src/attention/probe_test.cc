// T-1.6: the probe passes what computes and catches what does not.
#include "attention/probe.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "attention/registry.h"
#include "base/try.h"
#include "device/cuda/cuda_facts.h"

namespace topknot::attention {
namespace {

using namespace capability;

Result<std::unique_ptr<Attention>> make_reference(const MlaShape& shape, const Resources& host) {
  const auto entries = registry();
  const auto found = std::find_if(entries.begin(), entries.end(), [](const RegistryEntry& entry) {
    return entry.name == "cpu_reference";
  });
  return found->backend->create(shape, host);
}

// The reference, wrong in one way.
class Wrong final : public Attention {
 public:
  Wrong(std::unique_ptr<Attention> right, void (*spoil)(MlaArgs*)) : right_(std::move(right)) {
    spoil_ = spoil;
  }
  Status plan(const MlaBatch& batch) override { return right_->plan(batch); }
  Status run(const MlaArgs& args) override {
    MlaArgs changed = args;
    spoil_(&changed);
    return right_->run(changed);
  }

 private:
  std::unique_ptr<Attention> right_;
  void (*spoil_)(MlaArgs*);
};

template <void (*spoil)(MlaArgs*)>
Result<std::unique_ptr<Attention>> make_wrong(const MlaShape& shape, const Resources& host) {
  TOPKNOT_TRY(std::unique_ptr<Attention> right, make_reference(shape, host));
  return std::unique_ptr<Attention>(std::make_unique<Wrong>(std::move(right), spoil));
}

void double_scale(MlaArgs* args) { args->sm_scale *= 2; }
void need_lse(MlaArgs* args) {
  if (args->lse == nullptr) args->sm_scale *= 2;
}
// Leaves out one row of each token.
void forget_a_row(MlaArgs* args) {
  static std::vector<int32_t> slots, visible;  // outlive the call
  if (args->selection == Selection::kSparse) {
    const int64_t topk = args->sparse.topk;
    slots.assign(args->sparse.topk_slots, args->sparse.topk_slots + args->tokens * topk);
    for (int64_t token = 0; token < args->tokens; ++token) {
      slots[static_cast<size_t>(token * topk)] = -1;
    }
    args->sparse.topk_slots = slots.data();
  } else {
    visible.assign(args->dense.visible, args->dense.visible + args->tokens);
    for (int32_t& count : visible) --count;
    args->dense.visible = visible.data();
  }
}
void write_nothing(MlaArgs* args) { args->tokens = 0; }

std::vector<ProbeResult> probe(Result<std::unique_ptr<Attention>> (*create)(const MlaShape&,
                                                                            const Resources&),
                               std::span<const Rule> rules = {}) {
  ThreadPool pool(1);
  return probe_backend({"under_test", "", rules, create}, {&pool, ops::available_kernels().front()},
                       Facts().set(Fact::kDevice, DeviceKind::kCpu));
}

TEST(Probe, EveryBuiltBackendPassesWithEveryInstructionSet) {
  ThreadPool pool(2);
  const auto results = probe_all(BackendList(), &pool);
  const size_t gpus = device::cuda_facts().devices.size();
  size_t runs = 0;
  for (const RegistryEntry& entry : registry()) {
    if (entry.backend == nullptr) continue;
    const bool host = device_kind(*entry.backend) == DeviceKind::kCpu;
    runs += host ? ops::available_kernels().size() : gpus;
  }
  EXPECT_EQ(results.size(), runs * 2);
  for (const ProbeResult& result : results) {
    EXPECT_TRUE(result.passed()) << result.backend << ' ' << result.kernels << ' '
                                 << result.selection << ": " << result.largest_difference;
  }
}

TEST(Probe, TheReferenceAgreesWithItselfExactly) {
  for (const ProbeResult& result : probe(make_reference)) {
    EXPECT_EQ(result.largest_difference, 0) << result.selection;
    EXPECT_TRUE(result.passed());
  }
}

TEST(Probe, AWrongScaleIsCaught) {
  for (const ProbeResult& result : probe(make_wrong<double_scale>)) {
    EXPECT_FALSE(result.passed()) << result.selection;
  }
}

TEST(Probe, ItIsRunWithoutLseToo) {
  for (const ProbeResult& result : probe(make_wrong<need_lse>)) {
    EXPECT_FALSE(result.passed()) << result.selection;
  }
}

TEST(Probe, ARowThatIsNotReadIsCaught) {
  for (const ProbeResult& result : probe(make_wrong<forget_a_row>)) {
    EXPECT_FALSE(result.passed()) << result.selection;
    EXPECT_FALSE(std::isinf(result.largest_difference)) << "all was written";
  }
}

TEST(Probe, OutputThatWasNotWrittenIsCaught) {
  for (const ProbeResult& result : probe(make_wrong<write_nothing>)) {
    EXPECT_TRUE(std::isinf(result.largest_difference)) << result.selection;
    EXPECT_FALSE(result.passed());
  }
}

TEST(Probe, ABackendThatRefusesTheTileIsNotRunAndDoesNotPass) {
  static constexpr Rule kRules[] = {{Fact::kHeads, exactly(64), "one tile of 64 heads"}};
  for (const ProbeResult& result : probe(make_reference, kRules)) {
    ASSERT_EQ(result.refusals.size(), 1u);
    EXPECT_THAT(result.refusals[0], testing::HasSubstr("heads: needs exactly 64, found 4"));
    EXPECT_FALSE(result.passed());
  }
}

}  // namespace
}  // namespace topknot::attention
