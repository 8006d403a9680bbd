// The arithmetic and the picture; nothing here is timed.
#include <gtest/gtest.h>

#include "bench/plot.h"
#include "bench/row.h"

namespace topknot::bench {
namespace {

TEST(Bench, TheMedianIsTheMiddleOneWhateverTheOrder) {
  std::vector<double> values = {5, 1, 100, 2, 3};
  EXPECT_EQ(median(&values), 3);
  std::vector<double> one = {7};
  EXPECT_EQ(median(&one), 7);
}

TEST(Bench, TheFloorIsTheLargerOfBytesAndOperations) {
  Row row;
  row.bytes = 4e6;
  row.flops = 1e9;
  EXPECT_DOUBLE_EQ(row.floor_us({.read_bytes_per_second = 4e12, .mma_flops_per_second = 1e14}), 10);
  EXPECT_DOUBLE_EQ(row.floor_us({.read_bytes_per_second = 4e11, .mma_flops_per_second = 1e15}), 10);
  EXPECT_EQ(row.floor_us({}), 0) << "an unknown ceiling is no floor";
}

TEST(Bench, AnErrorAboveItsLimitOrNoNumberIsWrong) {
  Row row;
  row.error_limit = 1e-3;
  row.error = 1e-3;
  EXPECT_TRUE(row.right());
  row.error = 1.1e-3;
  EXPECT_FALSE(row.right());
  row.error = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(row.right());
}

TEST(Bench, ThePictureShowsEveryRowAndEscapesText) {
  Row row;
  row.shape = {{"heads", 64}, {"tokens", 1}};
  row.format = "bf16";
  row.us = 12.5;
  row.bytes = 4e6;
  row.baseline_us = 50;
  const std::vector<Row> rows = {row, row};
  const std::string svg =
      plot_svg("a < b & c", rows, {.device = "<GPU>", .read_bytes_per_second = 4e12});
  EXPECT_EQ(svg.find("<svg"), 0u);
  EXPECT_NE(svg.find("a &lt; b &amp; c"), std::string::npos);
  EXPECT_NE(svg.find("&lt;GPU&gt;"), std::string::npos);
  EXPECT_NE(svg.find("heads 64, tokens 1, bf16"), std::string::npos);
  size_t bars = 0;
  for (size_t at = svg.find("<rect class=\"o\""); at != std::string::npos;
       at = svg.find("<rect class=\"o\"", at + 1)) {
    ++bars;
  }
  EXPECT_EQ(bars, 2u);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
}

}  // namespace
}  // namespace topknot::bench
