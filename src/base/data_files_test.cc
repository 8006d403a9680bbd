#include "base/data_files.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace topknot {
namespace {

namespace fs = std::filesystem;

class DataFiles : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    prefix_ = fs::canonical(testing::TempDir()) / cat_name(test->name());
    fs::remove_all(prefix_);
    write("share/topknot/devices/small-card.json");
    write("share/topknot/devices/large-card.json");
    write("share/topknot/devices/README.md");
  }
  void TearDown() override {
    ::unsetenv("TOPKNOT_DATA_DIR");
    fs::remove_all(prefix_);
  }
  static std::string cat_name(const char* name) { return std::string("topknot_data_") + name; }
  void write(const std::string& file) const {
    fs::create_directories((prefix_ / file).parent_path());
    std::ofstream(prefix_ / file) << "{}";
  }
  std::string at(const std::string& file) const { return (prefix_ / file).string(); }
  void choose() const { ::setenv("TOPKNOT_DATA_DIR", at("share/topknot").c_str(), 1); }

  fs::path prefix_;
};

TEST_F(DataFiles, StandAboveAProgramAndAboveALibrary) {
  write("bin/topknot");
  write("lib/x86_64-linux-gnu/libtopknot.so");
  const auto expected = testing::ElementsAre(at("share/topknot/devices"));
  EXPECT_THAT(data_folders_above(at("bin/topknot"), "devices"), expected);
  EXPECT_THAT(data_folders_above(at("lib/x86_64-linux-gnu/libtopknot.so"), "devices"), expected);
  EXPECT_THAT(data_folders_above(at("bin/topknot"), "catalog"), testing::IsEmpty());
}

TEST_F(DataFiles, ALinkToTheProgramFindsThemToo) {
  write("bin/topknot");
  const fs::path link = fs::path(testing::TempDir()) / "topknot_data_link";
  fs::remove(link);
  fs::create_symlink(prefix_ / "bin/topknot", link);
  EXPECT_THAT(data_folders_above(link.string(), "devices"),
              testing::ElementsAre(at("share/topknot/devices")));
  fs::remove(link);
}

TEST_F(DataFiles, NamesLeaveOutWhatIsNoJson) {
  choose();
  const auto names = data_names("devices");
  EXPECT_THAT(names, testing::IsSupersetOf({"large-card", "small-card"}));
  EXPECT_THAT(names, testing::Not(testing::Contains("README")));
}

TEST_F(DataFiles, ANameBecomesItsPathAndAPathStays) {
  choose();
  const auto found = find_data_file("devices", "small-card", "machine");
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, at("share/topknot/devices/small-card.json"));
  EXPECT_EQ(find_data_file("devices", "./mine", "machine").value(), "./mine");
  EXPECT_EQ(find_data_file("devices", "mine.json", "machine").value(), "mine.json");
}

TEST_F(DataFiles, AMisspeltNameGetsTheNearestAndAll) {
  choose();
  const auto found = find_data_file("devices", "smal-card", "machine");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::kNotFound);
  EXPECT_EQ(found.error().what, "no machine is named 'smal-card'");
  EXPECT_THAT(found.error().fix, testing::HasSubstr("did you mean 'small-card'?"));
  EXPECT_THAT(found.error().fix, testing::HasSubstr("large-card"));
}

TEST_F(DataFiles, WithoutAnyFolderTheErrorSaysWhereItLooked) {
  const auto found = find_data_file("nothing-of-this-kind", "x", "thing");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().why, testing::HasSubstr("share/topknot/nothing-of-this-kind"));
  EXPECT_THAT(found.error().fix, testing::HasSubstr("TOPKNOT_DATA_DIR"));
}

}  // namespace
}  // namespace topknot
