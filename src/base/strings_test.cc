#include "base/strings.h"

#include <gtest/gtest.h>

namespace topknot {
namespace {

TEST(Strings, InvalidUtf8IsFoundWhereItBegins) {
  EXPECT_EQ(find_invalid_utf8("plain"), std::string_view::npos);
  EXPECT_EQ(find_invalid_utf8("a\xF0\x9F\x98\x80z"), std::string_view::npos);
  EXPECT_EQ(find_invalid_utf8("ab\xFF"), 2u);
  EXPECT_EQ(find_invalid_utf8("\xC0\xAF"), 0u) << "overlong slash";
  EXPECT_EQ(find_invalid_utf8("x\xED\xA0\x80"), 1u) << "surrogate";
  EXPECT_EQ(find_invalid_utf8("\xF4\x90\x80\x80"), 0u) << "above U+10FFFF";
  EXPECT_EQ(find_invalid_utf8("ok\xE2\x82"), 2u) << "cut short";
}

TEST(Strings, IncompleteSequencesAreHeldBackAndInvalidOnesAreNot) {
  EXPECT_EQ(complete_utf8_prefix(""), 0u);
  EXPECT_EQ(complete_utf8_prefix("ab"), 2u);
  EXPECT_EQ(complete_utf8_prefix("a\xF0\x9F\x98"), 1u);
  EXPECT_EQ(complete_utf8_prefix("a\xF0\x9F\x98\x80"), 5u);
  EXPECT_EQ(complete_utf8_prefix("a\xFF"), 2u);
}

TEST(Strings, PrintableHidesControlBytes) {
  EXPECT_EQ(printable("a\x1b[31m\xFF"), "a\\x1b[31m\\xff");
  EXPECT_EQ(printable("abcdef", 3), "abc...");
}

TEST(Strings, EachBrokenSequenceIsReplacedOnce) {
  EXPECT_EQ(to_valid_utf8("a\xF0\x9F\x98z"), "a\uFFFDz");
  EXPECT_EQ(to_valid_utf8("\xE4\xB8"), "\uFFFD");
  EXPECT_EQ(to_valid_utf8("\xFF\xFE"), "\uFFFD\uFFFD");
  EXPECT_EQ(to_valid_utf8("\xE0\x80"), "\uFFFD\uFFFD") << "overlong from the second byte on";
  EXPECT_EQ(to_valid_utf8("\xF0\x9F\xF0\x9F\x98\x80"), "\uFFFD\U0001F600");
}

TEST(Strings, NearestNamesComeFirst) {
  const std::vector<std::string> names = {"cpu_reference", "cpu_blocked", "portable"};
  EXPECT_EQ(nearest("cpu_referense", names).front(), "cpu_reference");
  EXPECT_TRUE(nearest("zzz", names).empty());
}

TEST(Strings, HumanBytes) {
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
}

}  // namespace
}  // namespace topknot
