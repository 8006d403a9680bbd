#include "base/json_reader.h"

#include <gmock/gmock.h>

namespace topknot {
namespace {

using testing::HasSubstr;

TEST(ParseJson, BrokenTextIsFoundByLineAndColumn) {
  const auto parsed = parse_json("{\n  \"a\": 1,\n  \"b\" 2\n}", "x.json");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, Code::kCorrupt);
  EXPECT_EQ(parsed.error().where, "x.json, line 3, column 7");
  EXPECT_FALSE(parse_json("", "x.json"));
  EXPECT_FALSE(parse_json("{\"a\": 1e999}", "x.json"));
  EXPECT_FALSE(parse_json("{\"a\": \"\xff\"}", "x.json"));
}

TEST(ParseJson, AKeyMayStandOnceInAnObject) {
  const auto parsed = parse_json(R"({"a": {"b": 1, "b": 2}, "c": {"b": 3}})", "x.json");
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().why, HasSubstr("b: needs to stand once, found twice"));
  EXPECT_TRUE(parse_json(R"({"a": {"b": 1}, "c": {"b": 3}})", "x.json"));
}

TEST(ParseJson, DeepNestingBuildsNothing) {
  const std::string deep(100000, '[');
  EXPECT_FALSE(parse_json(deep, "x.json"));
  const auto closed = parse_json(deep + std::string(100000, ']'), "x.json");
  ASSERT_FALSE(closed);
  EXPECT_THAT(closed.error().why, HasSubstr("at most 16 levels"));
}

struct Read {
  std::optional<uint64_t> bytes, rate;
  std::optional<std::string> name;
  std::optional<bool> flag;
  size_t parts = 0;
  std::string why;
};

Read read(const std::string& text) {
  const Json json = *parse_json(text, "x.json");
  JsonProblems problems;
  JsonObject top(json, "", &problems);
  Read out;
  out.bytes = top.number("bytes", 1, 1000, Need::kRequired);
  out.rate = top.number("rate", 0, uint64_t{1} << 60);
  out.name = top.text("name");
  out.flag = top.boolean("flag");
  for (JsonObject& part : top.objects("parts")) {
    if (part.number("width", 1, 9)) ++out.parts;
    part.finish();
  }
  top.finish();
  if (!problems.empty()) out.why = problems.to_error("bad", "x.json").why;
  return out;
}

TEST(JsonObject, ReadsWhatIsThere) {
  const Read good = read(R"({"bytes": 12, "rate": 1.792e12, "name": "a", "flag": true,
                             "parts": [{"width": 1}, {"width": 2}]})");
  EXPECT_EQ(good.why, "");
  EXPECT_EQ(good.bytes, 12u);
  EXPECT_EQ(good.rate, 1792000000000u);
  EXPECT_EQ(good.name, "a");
  EXPECT_EQ(good.flag, true);
  EXPECT_EQ(good.parts, 2u);
}

TEST(JsonObject, EveryProblemIsReportedWithItsKey) {
  const Read bad = read(R"({"byts": 12, "rate": 1.5, "name": 7, "flag": "yes",
                            "parts": [{"width": 1}, {"width": -2, "wdth": 0}, 3]})");
  EXPECT_THAT(bad.why, HasSubstr("bytes: needs a value, found nothing"));
  EXPECT_THAT(bad.why, HasSubstr("rate: needs a whole number of 0 to"));
  EXPECT_THAT(bad.why, HasSubstr("found 1.5"));
  EXPECT_THAT(bad.why, HasSubstr("name: needs a text, found 7"));
  EXPECT_THAT(bad.why, HasSubstr("flag: needs true or false, found \"yes\""));
  EXPECT_THAT(bad.why, HasSubstr("parts[1].width: needs a whole number of 1 to 9, found -2"));
  EXPECT_THAT(bad.why, HasSubstr("parts[1].wdth: needs a known key: did you mean 'width'?"));
  EXPECT_THAT(bad.why, HasSubstr("parts[2]: needs an object, found 3"));
  EXPECT_THAT(bad.why, HasSubstr("byts: needs a known key: did you mean 'bytes'?"));
}

TEST(JsonObject, ManyProblemsAreCounted) {
  std::string text = "{\"bytes\": 1, \"parts\": [";
  for (int i = 0; i < 40; ++i) text += i == 0 ? "0" : ", 0";
  EXPECT_THAT(read(text + "]}").why, HasSubstr("and 8 more"));
}

TEST(JsonObject, AnotherThingThanAnObjectIsAProblem) {
  EXPECT_THAT(read("[1, 2]").why, HasSubstr("the file: needs an object, found a list of 2"));
}

}  // namespace
}  // namespace topknot
