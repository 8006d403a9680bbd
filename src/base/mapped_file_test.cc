#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/mapped_range.h"

namespace topknot {
namespace {

constexpr int kExitCode = 8;

class MappedFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    std::ofstream(path_) << std::string(1 << 20, 'x');
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string path_ = ::testing::TempDir() + "topknot_mapped_file_" +
                      ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

using MappedFileDeathTest = MappedFileTest;

// Reads the last byte of `file` after the file behind it was cut to one page.
void read_what_is_lost(const std::string& path, const MappedFile& file) {
  if (::truncate(path.c_str(), 4096) != 0) std::_Exit(1);
  const volatile std::byte* last = &file.bytes().back();
  std::_Exit(*last == std::byte{'x'} ? 2 : 3);
}

TEST_F(MappedFileDeathTest, AFileThatIsCutWhileItIsMappedIsToldByName) {
  EXPECT_EXIT(
      {
        report_lost_files(kExitCode);
        const auto other = MappedFile::open("/proc/self/exe");
        auto file = MappedFile::open(path_);
        const MappedFile moved = std::move(*file);
        read_what_is_lost(path_, moved);
      },
      ::testing::ExitedWithCode(kExitCode), "a file was lost.*\n.*topknot_mapped_file_");
}

TEST_F(MappedFileDeathTest, AnotherBusErrorStaysOne) {
  EXPECT_EXIT(
      {
        report_lost_files(kExitCode);
        std::raise(SIGBUS);
      },
      ::testing::KilledBySignal(SIGBUS), "^$");
}

TEST_F(MappedFileDeathTest, WithoutAProgramThatAsksNothingIsTaken) {
  EXPECT_EXIT(
      {
        std::signal(SIGBUS, SIG_DFL);  // a sanitizer may have taken it
        const auto file = MappedFile::open(path_);
        read_what_is_lost(path_, *file);
      },
      ::testing::KilledBySignal(SIGBUS), "^$");
}

TEST_F(MappedFileTest, MoreRangesThanAreKnownAreMappedAllTheSame) {
  std::vector<MappedRange> ranges;
  for (size_t i = 0; i < kMaxMappedRanges; ++i) ranges.emplace_back(&ranges, 0, "full");
  const auto file = MappedFile::open(path_);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->bytes().back(), std::byte{'x'});
}

TEST_F(MappedFileTest, ARangeIsFreeAgainWhenItsFileIsGone) {
  for (size_t i = 0; i < 3 * kMaxMappedRanges; ++i) const MappedRange range(&i, sizeof(i), "once");
  EXPECT_EXIT(
      {
        report_lost_files(kExitCode);
        const auto file = MappedFile::open(path_);
        read_what_is_lost(path_, *file);
      },
      ::testing::ExitedWithCode(kExitCode), "a file was lost");
}

}  // namespace
}  // namespace topknot
