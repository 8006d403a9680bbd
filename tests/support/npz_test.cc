#include "support/npz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/strings.h"
#include "support/golden.h"

namespace topknot::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const NpyArray& at(const Npz& npz, std::string_view name) {
  const auto found = npz.find(name);
  EXPECT_TRUE(found) << found.error().to_string();
  return **found;
}

Npz open_types() {
  auto npz = Npz::open(data_path("npz/types.npz"));
  EXPECT_TRUE(npz) << npz.error().to_string();
  return std::move(npz).value();
}

TEST(Npz, ReadsEveryTypeAsNumpyWroteIt) {
  const Npz npz = open_types();
  EXPECT_EQ(npz.arrays().size(), 11u);
  EXPECT_THAT(*at(npz, "f32").as_floats(),
              ElementsAre(1.5f, -2.25f, INFINITY, 3.0e-8f, -0.0f, 65504.0f));
  EXPECT_TRUE(std::signbit((*at(npz, "f32").as_floats())[4]));
  EXPECT_THAT(*at(npz, "f64").as_doubles(), ElementsAre(0.1, -1e300));
  EXPECT_THAT(*at(npz, "i16").as_ints(), ElementsAre(-32768, 0, 32767));
  EXPECT_THAT(*at(npz, "i64").as_ints(), ElementsAre(-5, 2147483647));
  EXPECT_THAT(*at(npz, "u8").as_bytes(), ElementsAre(0, 255, 7));
  EXPECT_THAT(*at(npz, "flags").as_bytes(), ElementsAre(1, 0, 1));
  EXPECT_THAT(*at(npz, "flags").as_ints(), ElementsAre(1, 0, 1));
  EXPECT_THAT(*at(npz, "group/part").as_ints(), ElementsAre(7));
  const auto cube = *at(npz, "i32").as_ints();
  ASSERT_EQ(cube.size(), 24u);
  for (int i = 0; i < 24; ++i) EXPECT_EQ(cube[size_t(i)], i);
}

TEST(Npz, KeepsShapes) {
  const Npz npz = open_types();
  EXPECT_THAT(at(npz, "i32").shape(), ElementsAre(2, 3, 4));
  EXPECT_EQ(at(npz, "i32").shape_string(), "(2, 3, 4)");
  EXPECT_EQ(at(npz, "u8").shape_string(), "(3,)");
  EXPECT_EQ(at(npz, "scalar").shape_string(), "()");
  EXPECT_THAT(*at(npz, "scalar").as_floats(), ElementsAre(42.0f));
  EXPECT_THAT(at(npz, "empty").shape(), ElementsAre(0, 5));
  EXPECT_TRUE(at(npz, "empty").as_floats()->empty());
}

TEST(Npz, FloatsMayBeReadAsDoublesAndNothingElseIsConverted) {
  const Npz npz = open_types();
  EXPECT_EQ((*at(npz, "f32").as_doubles())[1], -2.25);
  EXPECT_FALSE(at(npz, "f64").as_floats());
  EXPECT_FALSE(at(npz, "f32").as_ints());
  EXPECT_FALSE(at(npz, "i16").as_bytes());
  const auto wide = at(npz, "wide").as_ints();
  ASSERT_FALSE(wide);
  EXPECT_EQ(wide.error().code, Code::kOutOfRange);
}

TEST(Npz, MembersWithoutCompressionAreRead) {
  const auto npz = Npz::open(data_path("npz/stored.npz"));
  ASSERT_TRUE(npz) << npz.error().to_string();
  EXPECT_THAT(*at(*npz, "x").as_floats(), ElementsAre(0, 1, 2, 3, 4));
}

TEST(Npz, RefusesWhatItDoesNotReadByName) {
  const auto fortran = Npz::open(data_path("npz/fortran.npz"));
  ASSERT_FALSE(fortran);
  EXPECT_EQ(fortran.error().code, Code::kUnsupported);
  EXPECT_THAT(fortran.error().to_string(), HasSubstr("Fortran"));
  const auto complex = Npz::open(data_path("npz/complex.npz"));
  ASSERT_FALSE(complex);
  EXPECT_THAT(complex.error().to_string(), HasSubstr("<c8"));
  EXPECT_THAT(complex.error().to_string(), HasSubstr("complex.npz"));
}

TEST(Npz, MissingFilesArraysAndOtherFilesAreErrors) {
  EXPECT_EQ(Npz::open(data_path("npz/none.npz")).error().code, Code::kNotFound);
  EXPECT_EQ(Npz::open(data_path("npz/make_npz.py")).error().code, Code::kCorrupt);
  const Npz npz = open_types();
  const auto missing = npz.find("f33");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_THAT(missing.error().fix, HasSubstr("'f32'"));
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Npz, AChangedByteIsFound) {
  std::string bytes = read_file(data_path("npz/stored.npz"));
  const size_t payload = bytes.find("NUMPY") + 124;  // within the elements, behind the header
  ASSERT_LT(payload, bytes.size());
  bytes[payload] = char(bytes[payload] ^ 1);
  const std::string path = testing::TempDir() + "topknot_changed.npz";
  std::ofstream(path, std::ios::binary) << bytes;
  const auto npz = Npz::open(path);
  std::filesystem::remove(path);
  ASSERT_FALSE(npz);
  EXPECT_EQ(npz.error().code, Code::kCorrupt);
  EXPECT_THAT(npz.error().why, HasSubstr("CRC"));
}

// A version 1 .npy file with this dict and `data_bytes` zero bytes.
std::string npy(std::string_view dict, size_t data_bytes) {
  std::string out = "\x93NUMPY";
  out += {'\x01', '\x00', char(dict.size() & 255), char(dict.size() >> 8)};
  return out + std::string(dict) + std::string(data_bytes, '\0');
}
Result<NpyArray> parse(const std::string& file) {
  return NpyArray::parse(std::as_bytes(std::span(file)), "x");
}

TEST(Npy, HostileHeadersAreRefused) {
  ASSERT_TRUE(parse(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 8)));
  for (const auto& [file, code] : std::initializer_list<std::pair<std::string, Code>>{
           {"", Code::kCorrupt},
           {"\x93NUMPY", Code::kCorrupt},
           {"\x93NUMPY\x09", Code::kCorrupt},
           {std::string("\x93NUMPY\x01\x00\xff\xff", 10), Code::kCorrupt},
           {std::string("\x93NUMPY\x07\x00\x01\x00 ", 11), Code::kUnsupported},
           {npy("", 0), Code::kCorrupt},
           {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2", 8), Code::kCorrupt},
           {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", 8), Code::kCorrupt},
           {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2 3), }", 8), Code::kCorrupt},
           {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 8), Code::kCorrupt},
           {npy("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,), }", 8), Code::kCorrupt},
           {npy("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", 8),
            Code::kUnsupported},
           {npy("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", 8), Code::kUnsupported},
           {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", 4),
            Code::kCorrupt},
           {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", 8),
            Code::kCorrupt},
           {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", 0),
            Code::kOutOfRange}}) {
    const auto array = parse(file);
    ASSERT_FALSE(array) << printable(file);
    EXPECT_EQ(array.error().code, code) << printable(file) << "\n" << array.error().to_string();
  }
}

TEST(Npy, EveryPrefixOfAFileIsAnError) {
  const std::string file = npy("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 2), }", 8);
  ASSERT_TRUE(parse(file));
  for (size_t n = 0; n < file.size(); ++n) EXPECT_FALSE(parse(file.substr(0, n))) << n;
}

}  // namespace
}  // namespace topknot::test
