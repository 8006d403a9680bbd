#include "base/new_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace topknot {
namespace {

namespace fs = std::filesystem;

class NewFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              (std::string("topknot_new_file_") +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    path_ = (folder_ / "report.json").string();
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& text) const { std::ofstream(path_) << text; }
  std::string read() const {
    std::stringstream out;
    out << std::ifstream(path_).rdbuf();
    return out.str();
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  fs::path folder_;
  std::string path_;
};

TEST_F(NewFileTest, AppearsWholeAndAlone) {
  {
    auto file = NewFile::create(path_, Overwrite::kNo);
    ASSERT_TRUE(file) << file.error().to_string();
    EXPECT_FALSE(fs::exists(path_)) << "not before it is whole";
    ASSERT_TRUE(file->commit("text\n"));
  }
  EXPECT_EQ(read(), "text\n");
  EXPECT_EQ(files(), 1u);
}

TEST_F(NewFileTest, LeavesNothingWithoutCommit) {
  ASSERT_TRUE(NewFile::create(path_, Overwrite::kNo));
  EXPECT_EQ(files(), 0u);
}

TEST_F(NewFileTest, IsNotWrittenOverAnother) {
  write("old");
  const auto refused = NewFile::create(path_, Overwrite::kNo);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  EXPECT_EQ(read(), "old");
  {
    auto forced = NewFile::create(path_, Overwrite::kYes);
    ASSERT_TRUE(forced);
    ASSERT_TRUE(forced->commit("new"));
  }
  EXPECT_EQ(read(), "new");
  EXPECT_EQ(files(), 1u);
}

TEST_F(NewFileTest, AFileThatCameMeanwhileStays) {
  {
    auto file = NewFile::create(path_, Overwrite::kNo);
    ASSERT_TRUE(file);
    write("theirs");
    EXPECT_FALSE(file->commit("ours"));
  }
  EXPECT_EQ(read(), "theirs");
  EXPECT_EQ(files(), 1u);
}

TEST_F(NewFileTest, AFolderThatIsNotThereIsAnError) {
  const auto file = NewFile::create((folder_ / "none" / "report.json").string(), Overwrite::kYes);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, Code::kIo);
}

}  // namespace
}  // namespace topknot
