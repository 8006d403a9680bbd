// T-1.2 on a host: every number of heads on a rank, top-k and rope width runs, and agrees with the
// reference.
#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "attention/registry.h"

namespace topknot::attention {
namespace {

using capability::DeviceKind;
using capability::Fact;
using capability::KvFormat;

constexpr int64_t kRank = 32;  // of the latent; the shape under test does not depend on it
constexpr int64_t kSlots = 2304;

struct Problem {
  MlaShape shape;
  int64_t topk;
  std::vector<float> q;
  std::vector<float> rows;
  std::vector<int32_t> slots;
};

Problem make_problem(int64_t heads, int64_t topk, int64_t rope) {
  Problem p;
  p.shape = {heads, kRank, rope};
  p.topk = topk;
  std::mt19937 random(static_cast<uint32_t>(heads * 10'000 + topk * 2 + rope));
  std::normal_distribution<float> normal;
  p.q.resize(static_cast<size_t>(heads * p.shape.width()));
  p.rows.resize(static_cast<size_t>(kSlots * p.shape.width()));
  for (float& each : p.q) each = normal(random);
  for (float& each : p.rows) each = normal(random);
  std::vector<int32_t> all(kSlots);
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), random);
  p.slots.assign(all.begin(), all.begin() + topk);
  return p;
}

std::vector<float> run(const Backend& backend, Problem& p, const Resources& host) {
  std::vector<float> out(static_cast<size_t>(p.shape.heads * kRank), std::nanf(""));
  MlaArgs args;
  args.q = p.q.data();
  args.kv = {KvFormat::kF32, reinterpret_cast<std::byte*>(p.rows.data()), p.shape.width(),
             p.shape.width() * 4, kSlots};
  args.selection = Selection::kSparse;
  args.sparse = {p.slots.data(), p.topk};
  args.tokens = 1;
  args.sm_scale = 0.1f;
  args.out = out.data();
  const auto attention = backend.create(p.shape, host);
  EXPECT_TRUE(attention && (*attention)->plan({args.selection, args.tokens, p.topk, 0}) &&
              (*attention)->run(args));
  return out;
}

Facts asked(const Problem& p) {
  return Facts()
      .set(Fact::kDevice, DeviceKind::kCpu)
      .set(Fact::kSelection, Selection::kSparse)
      .set(Fact::kHeads, p.shape.heads)
      .set(Fact::kKvLoraRank, p.shape.kv_lora_rank)
      .set(Fact::kQkRopeHeadDim, p.shape.qk_rope_head_dim)
      .set(Fact::kTopk, p.topk)
      .set(Fact::kKvFormat, KvFormat::kF32)
      .set(Fact::kPageTokens, kvcache::kPageTokens);
}

class Shapes : public testing::TestWithParam<int64_t> {};

TEST_P(Shapes, AllRun) {
  ThreadPool pool(1);
  const Resources host{&pool, ops::available_kernels().front()};
  const int64_t heads = GetParam();
  for (const int64_t topk : {64, 128, 192, 256, 512, 1024, 1152, 2048, 2176}) {
    for (const int64_t rope : {0, 64}) {
      SCOPED_TRACE(testing::Message() << "top-k " << topk << ", rope " << rope);
      Problem p = make_problem(heads, topk, rope);
      const auto choice = select_backend(asked(p));
      ASSERT_TRUE(choice.chosen.has_value()) << capability::explain(choice);
      const auto got = run(chosen_backend(choice), p, host);
      const auto want = run(chosen_backend(select_backend(asked(p), "cpu_reference")), p, host);
      for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-4) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Heads, Shapes, testing::Values(1, 2, 4, 8, 16, 32, 64, 128));

}  // namespace
}  // namespace topknot::attention
