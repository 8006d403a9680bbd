#include "device/file_read_rate.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace topknot::device {
namespace {

class FileReadRateTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  void write(size_t bytes) { std::ofstream(path_) << std::string(bytes, 'x'); }
  std::string path_ = ::testing::TempDir() + "topknot_file_read_rate_" +
                      ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(FileReadRateTest, AWholeFileIsReadOnceToItsLastByte) {
  const size_t bytes = 3 * kFileReadPieceBytes + 12'345;  // an end that no disk block has
  write(bytes);
  const auto rate = measure_file_read(path_, {});
  ASSERT_TRUE(rate) << rate.error().to_string();
  EXPECT_EQ(rate->bytes, bytes);
  EXPECT_GT(rate->seconds, 0);
  EXPECT_GT(rate->bytes_per_second(), 0u);
  EXPECT_GE(rate->cached_share, 0);
  EXPECT_LE(rate->cached_share, 1);
}

TEST_F(FileReadRateTest, TheLimitOfBytesHolds) {
  write(3 * kFileReadPieceBytes);
  const auto rate = measure_file_read(path_, {.bytes = kFileReadPieceBytes, .seconds = 60});
  ASSERT_TRUE(rate) << rate.error().to_string();
  EXPECT_EQ(rate->bytes, kFileReadPieceBytes);
}

TEST_F(FileReadRateTest, WhatIsNoFileIsAnError) {
  EXPECT_EQ(measure_file_read(path_, {}).error().code, Code::kNotFound);
  EXPECT_EQ(measure_file_read(::testing::TempDir(), {}).error().code, Code::kIo);
  write(0);
  const auto empty = measure_file_read(path_, {});
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().code, Code::kCorrupt);
}

}  // namespace
}  // namespace topknot::device
