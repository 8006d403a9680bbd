// The backend on a real GPU, against cpu_simd: every shape that models and ranks have (T-1.2), and
// sizes beyond 31 and 16 bits (T-4.4). bench/gpu/attention_bench.cu checks the kernels alone
// against double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "attention/registry.h"
#include "attention/run_once.h"
#include "capability/device_facts.h"
#include "device/cuda/gpu.h"
#include "device/machine.h"
#include "tensor/dequantize.h"

namespace topknot::attention {
namespace {

using namespace capability;
using kvcache::kPageTokens;

// Weights and outputs are rounded to bf16, 2^-9 each; no element of these rows exceeds 5.5.
constexpr double kTolerance = 2 * 0x1p-9 * 5.5;

float rounded(float value) { return tensor::bf16_to_f32(tensor::f32_to_bf16(value)); }

const Backend& backend_named(std::string_view name) {
  for (const RegistryEntry& entry : registry()) {
    if (entry.name == name) return *entry.backend;
  }
  ADD_FAILURE() << "not built: " << name;
  return *registry().back().backend;
}

class Portable : public testing::Test {
 protected:
  void SetUp() override {
    machine_ = device::this_machine();
    if (machine_.devices.at(0).kind != DeviceKind::kCuda) {
      GTEST_SKIP() << "no GPU: " << device::cuda_facts().problem;
    }
    const Facts facts = device_facts(machine_.devices[0])
                            .set(Fact::kSelection, Selection::kSparse)
                            .set(Fact::kKvLoraRank, 512)
                            .set(Fact::kQkRopeHeadDim, 64)
                            .set(Fact::kKvFormat, KvFormat::kBf16)
                            .set(Fact::kPageTokens, kPageTokens);
    const auto refused = refusals(backend_named("portable").rules, facts);
    if (!refused.empty()) GTEST_SKIP() << refused[0].what << ": needs " << refused[0].needed;
  }

  HostAnswer on_gpu(const HostProblem& problem) {
    auto answer = run_once(backend_named("portable"), problem, {.cuda_device = 0});
    EXPECT_TRUE(answer) << answer.error().to_string();
    return answer ? std::move(*answer) : HostAnswer();
  }
  HostAnswer on_host(const HostProblem& problem) {
    auto answer =
        run_once(backend_named("cpu_simd"), problem, {&pool_, ops::available_kernels().front()});
    EXPECT_TRUE(answer) << answer.error().to_string();
    return answer ? std::move(*answer) : HostAnswer();
  }

  std::vector<float> random_values(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = rounded(normal_(random_));
    return values;
  }

  static void expect_near(const std::vector<float>& got, const std::vector<float>& want) {
    ASSERT_EQ(got.size(), want.size());
    double largest = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      if (got[i] == want[i]) continue;  // -inf too
      const double difference =
          std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i]));
      ASSERT_FALSE(std::isnan(difference)) << "at " << i;
      largest = std::max(largest, difference);
    }
    EXPECT_LE(largest, kTolerance);
  }

  device::Machine machine_;
  ThreadPool pool_{4};
  std::mt19937 random_{20260702};
  std::normal_distribution<float> normal_;
};

TEST_F(Portable, EveryShapeOfARankRuns) {
  constexpr int64_t kSlots = 2304, kTokens = 2;
  for (const int64_t rope : {64, 0}) {
    const int64_t width = 512 + rope;
    auto cache = kvcache::Cache::create({KvFormat::kBf16, width, 0, {false}, rope}, kSlots);
    ASSERT_TRUE(cache);
    const auto rows = cache->latent_rows(0);
    for (int64_t slot = 0; slot < kSlots; ++slot) {
      kvcache::write_row(rows, slot, random_values(width).data());
    }
    std::vector<int32_t> order(kSlots);
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
    for (const int64_t heads : {1, 2, 4, 8, 16, 32, 64, 128}) {
      for (const int64_t topk : {64, 128, 192, 256, 512, 1024, 1152, 2048, 2176}) {
        SCOPED_TRACE("heads " + std::to_string(heads) + " top-k " + std::to_string(topk) +
                     " rope " + std::to_string(rope));
        std::vector<int32_t> slots;
        for (int64_t token = 0; token < kTokens; ++token) {
          std::shuffle(order.begin(), order.end(), random_);
          slots.insert(slots.end(), order.begin(), order.begin() + topk);
          slots[slots.size() - 7] = -1;
        }
        const std::vector<float> q = random_values(kTokens * heads * width);
        HostProblem problem{.shape = {heads, 512, rope}};
        problem.args.q = q.data();
        problem.args.kv = rows;
        problem.args.sparse = {slots.data(), topk};
        problem.args.tokens = kTokens;
        problem.args.sm_scale = 1.0f / 16;
        const HostAnswer got = on_gpu(problem), want = on_host(problem);
        expect_near(got.out, want.out);
        expect_near(got.lse, want.lse);
      }
    }
  }
}

// More tokens than a grid has in its second dimension.
TEST_F(Portable, SeventyThousandTokens) {
  constexpr int64_t kTokens = 70'001, kTopk = 3, kWidth = 576;
  auto cache = kvcache::Cache::create({KvFormat::kBf16, kWidth, 0, {false}, 64}, kPageTokens);
  ASSERT_TRUE(cache);
  const auto rows = cache->latent_rows(0);
  for (int64_t slot = 0; slot < rows.slots; ++slot) {
    kvcache::write_row(rows, slot, random_values(kWidth).data());
  }
  std::vector<int32_t> slots;
  for (int64_t i = 0; i < kTokens * kTopk; ++i) {
    slots.push_back(static_cast<int32_t>(random_() % 65) - 1);
  }
  const std::vector<float> q = random_values(kTokens * kWidth);
  HostProblem problem{.shape = {1, 512, 64}};
  problem.args.q = q.data();
  problem.args.kv = rows;
  problem.args.sparse = {slots.data(), kTopk};
  problem.args.tokens = kTokens;
  problem.args.sm_scale = 1.0f / 16;
  const HostAnswer got = on_gpu(problem), want = on_host(problem);
  expect_near(got.out, want.out);
  expect_near(got.lse, want.lse);
}

// Rows beyond 2^31 elements and 2^32 bytes: the same rows in a large pool and in a small one give
// the same bits.
TEST_F(Portable, RowsBeyondThirtyOneBits) {
  constexpr int64_t kWidth = 576, kRowBytes = 2 * kWidth, kSlots = 4'000'000, kTopk = 40;
  constexpr size_t kPoolBytes = static_cast<size_t>(kSlots * kRowBytes);  // 4.6 GB
  auto stream = device::Stream::create(0);
  ASSERT_TRUE(stream);
  auto pool = device::DeviceBuffer::allocate(0, kPoolBytes, "a large pool");
  if (!pool) GTEST_SKIP() << pool.error().to_string();
  auto small = device::DeviceBuffer::allocate(0, kTopk * kRowBytes, "rows");
  auto lists = device::DeviceBuffer::allocate(0, 2 * kTopk * sizeof(int32_t), "slots");
  auto q = device::DeviceBuffer::allocate(0, kRowBytes, "queries");
  auto out = device::DeviceBuffer::allocate(0, 2 * 512 * 2, "outputs");
  ASSERT_TRUE(small && lists && q && out);
  ASSERT_TRUE(device::fill(pool->data(), 0xFF, kPoolBytes, *stream));
  std::vector<int32_t> slots;
  std::vector<uint16_t> row(kWidth);
  const auto draw = [&] {
    for (uint16_t& value : row) value = tensor::f32_to_bf16(normal_(random_));
  };
  for (int64_t i = 0; i < kTopk; ++i) {
    const int64_t slot = kSlots - 1 - i * 2017;  // the last few have no other rows behind them
    slots.push_back(static_cast<int32_t>(slot));
    draw();
    ASSERT_TRUE(device::copy_to_device(pool->as<std::byte>() + slot * kRowBytes, row.data(),
                                       kRowBytes, *stream));
    ASSERT_TRUE(device::copy_to_device(small->as<std::byte>() + i * kRowBytes, row.data(),
                                       kRowBytes, *stream));
  }
  for (int32_t i = 0; i < kTopk; ++i) slots.push_back(i);
  draw();
  ASSERT_TRUE(device::copy_to_device(q->data(), row.data(), kRowBytes, *stream));
  ASSERT_TRUE(
      device::copy_to_device(lists->data(), slots.data(), slots.size() * sizeof(int32_t), *stream));
  auto attention = backend_named("portable").create({1, 512, 64}, {.cuda_device = 0});
  ASSERT_TRUE(attention) << attention.error().to_string();
  ASSERT_TRUE((*attention)->plan({Selection::kSparse, 1, kTopk, 0}));
  for (const int64_t which : {0, 1}) {
    MlaArgs args;
    args.q = q->data();
    args.kv = {KvFormat::kBf16,
               which == 0 ? pool->as<std::byte>() : small->as<std::byte>(),
               kWidth,
               kRowBytes,
               which == 0 ? kSlots : kTopk,
               64};
    args.sparse = {lists->as<int32_t>() + which * kTopk, kTopk};
    args.tokens = 1;
    args.sm_scale = 1.0f / 16;
    args.out = out->as<uint16_t>() + which * 512;
    args.stream = stream->get();
    ASSERT_TRUE((*attention)->run(args));
  }
  std::vector<uint16_t> answers(2 * 512);
  ASSERT_TRUE(stream->synchronize());
  ASSERT_TRUE(device::copy_to_host(answers.data(), out->data(), 2 * 512 * 2, *stream));
  EXPECT_TRUE(std::equal(answers.begin(), answers.begin() + 512, answers.begin() + 512));
  EXPECT_NE(answers[0], 0);
}

// A captured step replays: run() only enqueues.
TEST_F(Portable, ACallIsCapturedInAGraph) {
  auto stream = device::Stream::create(0);
  ASSERT_TRUE(stream);
  constexpr int64_t kWidth = 576, kTopk = 256, kHeads = 8;
  const auto make = [&](int64_t bytes) {
    auto buffer = device::DeviceBuffer::allocate(0, static_cast<size_t>(bytes), "a test");
    EXPECT_TRUE(buffer);
    EXPECT_TRUE(device::fill(buffer->data(), 0, buffer->bytes(), *stream));
    return std::move(*buffer);
  };
  const auto rows = make(kPageTokens * kWidth * 2), q = make(kHeads * kWidth * 2);
  const auto slots = make(kTopk * 4), out = make(kHeads * 512 * 2), lse = make(kHeads * 4);
  auto attention = backend_named("portable").create({kHeads, 512, 64}, {.cuda_device = 0});
  ASSERT_TRUE(attention);
  ASSERT_TRUE((*attention)->plan({Selection::kSparse, 1, kTopk, 0}));
  MlaArgs args;
  args.q = q.data();
  args.kv = {KvFormat::kBf16, rows.as<std::byte>(), kWidth, kWidth * 2, kPageTokens, 64};
  args.sparse = {slots.as<int32_t>(), kTopk};
  args.tokens = 1;
  args.sm_scale = 1;
  args.out = out.data();
  args.lse = lse.as<float>();
  args.stream = stream->get();
  ASSERT_TRUE(stream->synchronize());
  auto graph = device::Graph::capture(*stream, [&] { return (*attention)->run(args); });
  ASSERT_TRUE(graph) << graph.error().to_string();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(graph->launch(*stream));
  ASSERT_TRUE(stream->synchronize());
  std::vector<float> answer(kHeads);
  ASSERT_TRUE(device::copy_to_host(answer.data(), lse.data(), kHeads * 4, *stream));
  // 256 equal scores of zero; weights of one are exact.
  for (const float value : answer) EXPECT_NEAR(value, std::log(256.0f), 1e-5);
}

}  // namespace
}  // namespace topknot::attention
