// T-1.3: no launch asks for more shared memory than a block has on sm_86, sm_89 and sm_120. All
// kernels are listed here: the launchers take their bytes from the same functions. And the plan of
// a batch stays within the scratch that the backend takes.
#include "attention/backends/portable/tile_shape.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "attention/backends/portable/launch_plan.h"
#include "attention/registry.h"

namespace topknot::attention::portable {
namespace {

constexpr int kBlockOfSm120 = 101'376;  // bytes, with opt-in

TEST(SharedMemory, EveryKernelFitsABlockOfSm120) {
  for (int format = 0; format < kRowFormats; ++format) {
    for (const int heads : {16, 32, 64}) {
      const int bytes = tile_smem_bytes({static_cast<RowFormat>(format), heads});
      EXPECT_LE(bytes, kBlockOfSm120) << "format " << format << " heads " << heads;
      EXPECT_GT(bytes, 48 << 10) << "a tile has at least two stages of rows";
    }
  }
  for (int width = 8; width <= kGenericMaxWidth; width += 8) {
    EXPECT_LE(generic_smem_bytes(width), kBlockOfSm120) << "generic, " << width << " columns";
  }
}

TEST(SharedMemory, TheRuleAsksForWhatTheLargestKernelTakes) {
  for (const RegistryEntry& entry : registry()) {
    if (entry.name != "portable") continue;
    for (const Rule& rule : entry.backend->rules) {
      if (rule.fact != capability::Fact::kSmemPerBlock) continue;
      EXPECT_EQ(rule.accepts.values[0], kLargestSmemBytes);
      EXPECT_LE(rule.accepts.values[0], kBlockOfSm120);
      return;
    }
  }
  FAIL() << "the backend has no rule about shared memory";
}

// One source for every architecture: no file asks which it is compiled for.
TEST(Source, NoKernelBranchesOnItsArchitecture) {
  const std::filesystem::path folder =
      std::filesystem::path(TOPKNOT_SOURCE_DIR) / "src/attention/backends/portable";
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().filename() == "tile_shape_test.cc") continue;
    std::stringstream text;
    text << std::ifstream(file.path()).rdbuf();
    EXPECT_EQ(text.str().find("__CUDA_ARCH"), std::string::npos) << file.path();
    ++files;
  }
  EXPECT_GT(files, 15);
}

TEST(LaunchPlan, PartsFillTheGpuOnceAndNoneIsEmpty) {
  for (const int slots : {84, 132, 188, 264}) {
    for (const int64_t tokens : {1, 2, 7, 16, 64, 100, 128, 300, 4096}) {
      for (const int heads : {1, 8, 16, 17, 32, 64, 100, 128}) {
        for (const int64_t rows : {0, 1, 32, 33, 512, 1000, 2048, 2176}) {
          const int tile = tile_heads_for(heads);
          const int splits = splits_for(tokens, heads, tile, rows, slots);
          const int64_t blocks = tokens * ((heads + tile - 1) / tile) * splits;
          ASSERT_GE(splits, 1);
          if (splits > 1) {
            const int64_t tiles = (rows + kTileRows - 1) / kTileRows;
            const int64_t per_split = (tiles + splits - 1) / splits;
            ASSERT_LE(blocks, slots) << "scratch is for one wave";
            ASSERT_LE(splits, kMostSplits);
            ASSERT_LT((splits - 1) * per_split, tiles) << "the last part is empty";
          }
        }
      }
    }
  }
}

TEST(LaunchPlan, DenseContextsAreCutFinerWithinTheScratch) {
  constexpr int kSlots = 264, kWaves = 2;
  for (const int64_t tokens : {1, 8, 32, 64, 200, 1000}) {
    for (const int64_t rows : {1, 64, 4096, 32768, 1'000'000}) {
      const int splits = dense_splits_for(tokens, 8, 16, rows, kSlots, kWaves);
      EXPECT_GE(splits, splits_for(tokens, 8, 16, rows, kSlots));
      if (splits > 1) {
        EXPECT_LE(splits * tokens, kSlots * kWaves);
      }
    }
  }
}

}  // namespace
}  // namespace topknot::attention::portable
