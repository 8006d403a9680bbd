#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gguf/model_file.h"
#include "gguf/test_support.h"

namespace topknot::gguf {
namespace {

using testing::HasSubstr;

TEST(Value, IntegersOfAnyWidthAreReadIfTheyFit) {
  const Value big(ValueType::kU64, uint64_t{1} << 63);
  const Value negative(ValueType::kI8, int64_t{-1});
  const Value one(ValueType::kU16, uint64_t{1});
  const Value flag(ValueType::kBool, true);
  const Value real(ValueType::kF32, 1.5);
  const Value text(ValueType::kString, std::string_view("1"));
  EXPECT_EQ(big.as_unsigned(), uint64_t{1} << 63);
  EXPECT_EQ(big.as_signed(), std::nullopt) << "does not fit";
  EXPECT_EQ(negative.as_unsigned(), std::nullopt);
  EXPECT_EQ(negative.as_signed(), -1);
  EXPECT_EQ(negative.as_bool(), std::nullopt);
  EXPECT_EQ(one.as_bool(), true);
  EXPECT_EQ(flag.as_unsigned(), 1u);
  EXPECT_EQ(flag.as_bool(), true);
  EXPECT_EQ(real.as_unsigned(), std::nullopt) << "a float is no integer, even where it is whole";
  EXPECT_EQ(real.as_number(), 1.5);
  EXPECT_EQ(one.as_number(), 1.0);
  EXPECT_EQ(text.as_number(), std::nullopt);
  EXPECT_EQ(text.as_string(), "1");
  EXPECT_EQ(text.as_array(), nullptr);
}

TEST(Value, ArrayElements) {
  const std::string packed = raw(int16_t{-2}) + raw(int16_t{7});
  const Array array{
      .element_type = ValueType::kI16, .count = 2, .bytes = std::as_bytes(std::span(packed))};
  EXPECT_EQ(Value::element_number(array, 0), -2.0);
  EXPECT_EQ(Value::element_unsigned(array, 0), std::nullopt);
  EXPECT_EQ(Value::element_unsigned(array, 1), 7u);
  EXPECT_EQ(Value::element_unsigned(array, 2), std::nullopt) << "out of range";
  const Array strings{.element_type = ValueType::kString, .count = 1, .strings = {"x"}};
  EXPECT_EQ(Value::element_unsigned(strings, 0), std::nullopt);
}

TEST(Value, TextIsShortAndPrintable) {
  EXPECT_EQ(Value(ValueType::kF32, double{1e-5F}).to_string(), "1e-05");
  EXPECT_EQ(Value(ValueType::kBool, false).to_string(), "false");
  EXPECT_EQ(Value(ValueType::kString, std::string_view("a\0\xFF", 3)).to_string(), "a\\x00\\xff");
  const std::string packed(79 * 4, '\0');
  const Value array(ValueType::kArray, Array{.element_type = ValueType::kU32,
                                             .count = 79,
                                             .bytes = std::as_bytes(std::span(packed))});
  EXPECT_EQ(array.to_string(20), "[u32 x 79] 0, 0, 0, ...");
  const std::string hostile(1000, '\xFF');
  EXPECT_LE(Value(ValueType::kString, std::string_view(hostile)).to_string(50).size(), 55u);
}

TEST(Override, EachTypeIsParsed) {
  const auto parse = [](std::string_view text) {
    auto parsed = Override::parse(text);
    EXPECT_TRUE(parsed) << text;
    return std::move(parsed).value();
  };
  EXPECT_EQ(parse("a.b=int:-12").key, "a.b");
  EXPECT_EQ(std::get<int64_t>(parse("a=int:-12").value), -12);
  EXPECT_EQ(std::get<double>(parse("a=float:2.5e-3").value), 2.5e-3);
  EXPECT_EQ(std::get<bool>(parse("a=bool:true").value), true);
  EXPECT_EQ(std::get<bool>(parse("a=bool:false").value), false);
  EXPECT_EQ(std::get<std::string>(parse("a=str:x=y:z").value), "x=y:z");
  EXPECT_EQ(std::get<std::string>(parse("a=str:").value), "");
}

TEST(Override, WhatIsWrongIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"a", "missing"},
      {"a=int", "missing"},
      {"a:int=3", "missing"},
      {"=int:3", "key is empty"},
      {"a=int:", "'' is no 64-bit integer"},
      {"a=int:3x", "'3x' is no 64-bit integer"},
      {"a=int:9223372036854775808", "no 64-bit integer"},
      {"a=float:nan", "'nan' is no finite number"},
      {"a=float:1e999", "no finite number"},
      {"a=bool:1", "'1' is neither true nor false"},
      {"a=u32:1", "'u32' is no type"},
      {"general.alignment=int:64", "how the file is laid out"},
      {"split.count=int:1", "how the file is laid out"},
  };
  for (const auto& [text, why] : cases) {
    const auto parsed = Override::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::kInvalidArgument);
    EXPECT_THAT(parsed.error().why, HasSubstr(why)) << text;
    EXPECT_EQ(parsed.error().where, text);
  }
}

}  // namespace
}  // namespace topknot::gguf
