// Needs a GPU. T-3.2 and T-4.4 of selection. Oracle: select_top_k().
#include "attention/indexer/cuda/top_k.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "attention/indexer/top_k.h"
#include "support/gpu_fixture.h"

namespace topknot::attention {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using ScoreRows = std::vector<std::vector<float>>;

class CudaTopKTest : public test::GpuFixture {
 protected:
  cudaStream_t handle() const { return static_cast<cudaStream_t>(stream_.get()); }

  // Both ways, and the split way twice: each launch must leave its workspace as it found it.
  void expect_exact(const ScoreRows& rows, int32_t k) {
    const auto count = static_cast<int64_t>(rows.size());
    size_t longest = 1;
    for (const auto& row : rows) longest = std::max(longest, row.size());
    const auto stride = static_cast<int64_t>((longest + 3) / 4 * 4);
    // Behind its end a row holds what would be taken first.
    std::vector<float> scores(static_cast<size_t>(count * stride), kInf);
    std::vector<int32_t> visible, want(static_cast<size_t>(count * k), -1);
    for (size_t r = 0; r < rows.size(); ++r) {
      std::copy(rows[r].begin(), rows[r].end(), scores.begin() + int64_t(r) * stride);
      visible.push_back(static_cast<int32_t>(rows[r].size()));
      select_top_k(rows[r], k, &want[r * static_cast<size_t>(k)]);
    }
    const auto d_scores = upload(scores), d_visible = upload(visible);
    const auto workspace = poisoned<std::byte>(split_top_k_workspace_bytes(count));
    ASSERT_TRUE(device::fill(workspace.data(), 0,
                             static_cast<size_t>(split_top_k_zeroed_bytes(count)), stream_));
    for (const bool split : {false, true, true}) {
      const auto positions = poisoned<int32_t>(count * k);
      ASSERT_TRUE(device::fill(positions.data(), 0xAB, positions.bytes(), stream_));
      const TopKArgs args = {d_scores.as<float>(),    stride, d_visible.as<int32_t>(),
                             positions.as<int32_t>(), count,  k};
      ASSERT_EQ(split ? launch_split_top_k(args, {workspace.data(), count}, handle())
                      : launch_row_top_k(args, handle()),
                cudaSuccess);
      const auto got = download<int32_t>(positions, count * k);
      const auto differs = std::mismatch(got.begin(), got.end(), want.begin()).first - got.begin();
      ASSERT_TRUE(got == want) << "k " << k << " row " << differs / k << " of length "
                               << visible[static_cast<size_t>(differs / k)] << " entry "
                               << differs % k << ", split " << split;
    }
  }
};

ScoreRows hostile_rows(size_t n, std::mt19937* random) {
  std::normal_distribution<float> normal;
  ScoreRows rows = {std::vector<float>(n, 0.0f), std::vector<float>(n, -kInf),
                    std::vector<float>(n, kNan), std::vector<float>(n, kInf)};
  const auto add = [&](auto value) {
    std::vector<float> row(n);
    for (size_t i = 0; i < n; ++i) row[i] = value(i);
    rows.push_back(std::move(row));
  };
  add([&](size_t i) { return i == n / 2 ? 5.0f : -1.0f; });
  add([](size_t i) {
    return std::array<float, 7>{kNan, kInf, -kInf, 0.0f, -0.0f, 1e-42f, -1e-42f}[i * 5 % 7];
  });
  add([&](size_t) { return static_cast<float>((*random)() % 9) - 4; });  // many ties
  add([&](size_t) { return normal(*random); });
  add([&](size_t) { return normal(*random) * 1e-3f + 10; });  // one exponent: no list has room
  add([&](size_t) { return std::bit_cast<float>(static_cast<uint32_t>((*random)())); });
  add([](size_t i) { return static_cast<float>(i); });  // the largest all in the last part
  add([](size_t i) { return -static_cast<float>(i); });
  add([&](size_t i) { return i % 3 != 0 ? kNan : normal(*random); });
  add([&](size_t i) { return i + 1 == n ? -kInf : i == 1 ? -1.0f : i % 2 == 0 ? kNan : -kNan; });
  return rows;
}

TEST_F(CudaTopKTest, HostileRowsOfAnyLength) {
  std::mt19937 random(7);
  ScoreRows rows;
  for (const size_t n : {0u, 1u, 2u, 3u, 4u, 5u, 64u, 65u, 1000u, 2047u, 2048u, 2049u, 8192u, 8193u,
                         32767u, 32768u, 32769u, 65537u}) {
    for (auto& row : hostile_rows(n, &random)) rows.push_back(std::move(row));
  }
  for (const int32_t k : {1, 2, 64, 1000, 2048, 4096, 8192, 10'000}) expect_exact(rows, k);
}

TEST_F(CudaTopKTest, LongRows) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  ScoreRows rows;
  for (const size_t n : {131'073u, 262'145u, 1'000'000u}) {
    std::vector<float> row(n);
    for (float& score : row) score = normal(random);
    rows.push_back(row);
    for (float& score : row) score = static_cast<float>(random() % 100);
    rows.push_back(row);
    rows.emplace_back(n, 1.5f);
  }
  for (const int32_t k : {1, 2048}) expect_exact(rows, k);
}

TEST_F(CudaTopKTest, MoreRowsThanAGridHasInY) {
  std::mt19937 random(13);
  ScoreRows rows(70'000);
  for (auto& row : rows) {
    row.resize(random() % 12);
    for (float& score : row) score = static_cast<float>(random() % 5);
  }
  expect_exact(rows, 3);
}

// The rows lie more than 2^31 floats apart.
TEST_F(CudaTopKTest, SixtyFourBitIndices) {
  constexpr int64_t kStride = (int64_t{1} << 30) + 4;
  constexpr int64_t kRows = 3, kLength = 5000, kBytes = (2 * kStride + kLength) * 4;
  constexpr int32_t k = 100;
  auto scores = device::DeviceBuffer::allocate(0, static_cast<size_t>(kBytes), "a test");
  if (!scores) GTEST_SKIP() << "needs " << kBytes << " bytes of device memory";
  std::mt19937 random(17);
  const auto visible = upload(std::vector<int32_t>(kRows, static_cast<int32_t>(kLength)));
  std::vector<int32_t> want(kRows * k);
  for (int64_t r = 0; r < kRows; ++r) {
    std::vector<float> row(kLength);
    for (float& score : row) score = static_cast<float>(random());
    ASSERT_TRUE(device::copy_to_device(scores->as<float>() + r * kStride, row.data(), kLength * 4,
                                       stream_));
    select_top_k(row, k, &want[static_cast<size_t>(r * k)]);
  }
  const auto positions = poisoned<int32_t>(kRows * k);
  ASSERT_EQ(launch_row_top_k({scores->as<float>(), kStride, visible.as<int32_t>(),
                              positions.as<int32_t>(), kRows, k},
                             handle()),
            cudaSuccess);
  EXPECT_EQ(download<int32_t>(positions, kRows * k), want);
}

}  // namespace
}  // namespace topknot::attention
