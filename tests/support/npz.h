// Reads NumPy's .npy and .npz files: what the goldens under tests/data/golden are stored in.
// Little-endian, C order, the element types below. Sizes are bounded before anything is allocated.
// Source: NumPy's format description (numpy.lib.format, versions 1 to 3). An .npz is a zip of .npy
// members, each named after its array. Oracle: files written by NumPy itself (npz_test.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topknot/error.h"

namespace topknot::test {

inline constexpr uint64_t kMaxNpyHeaderBytes = 1 << 16;
inline constexpr uint64_t kMaxNpyDims = 8;
inline constexpr uint64_t kMaxNpyBytes = 256ull << 20;  // one array
inline constexpr uint64_t kMaxNpzBytes = 512ull << 20;  // all arrays of a file
inline constexpr uint64_t kMaxNpzArrays = 4096;

enum class NpyType : uint8_t { kF32, kF64, kI16, kI32, kI64, kU8, kBool };

const char* npy_type_name(NpyType type);  // "float32", as NumPy says it
size_t npy_type_bytes(NpyType type);

class NpyArray {
 public:
  // One .npy file in memory; `name` is for messages. kCorrupt for bytes that do not say what they
  // must, kUnsupported for Fortran order and other element types, kOutOfRange above the bounds.
  static Result<NpyArray> parse(std::span<const std::byte> file, std::string_view name);

  const std::string& name() const { return name_; }
  NpyType type() const { return type_; }
  std::span<const uint64_t> shape() const { return shape_; }  // outer to inner; empty for a scalar
  uint64_t elements() const;
  std::string shape_string() const;  // "(57, 256)"

  // The elements in C order. as_floats: only float32. as_doubles: float32 or float64. as_ints: any
  // integer or bool, kOutOfRange for one that does not fit. as_bytes: only uint8 or bool.
  Result<std::vector<float>> as_floats() const;
  Result<std::vector<double>> as_doubles() const;
  Result<std::vector<int32_t>> as_ints() const;
  Result<std::vector<uint8_t>> as_bytes() const;

 private:
  Error wrong_type(std::string_view needed) const;

  std::string name_;
  NpyType type_ = NpyType::kF32;
  std::vector<uint64_t> shape_;
  std::vector<std::byte> data_;
};

// All arrays of one .npz, read into memory.
class Npz {
 public:
  // kNotFound, kIo, kCorrupt; errors of a member name it.
  static Result<Npz> open(const std::string& path);

  const std::string& path() const { return path_; }
  const std::map<std::string, NpyArray, std::less<>>& arrays() const { return arrays_; }
  bool has(std::string_view name) const { return arrays_.find(name) != arrays_.end(); }
  Result<const NpyArray*> find(std::string_view name) const;  // kNotFound names near misses

 private:
  std::string path_;
  std::map<std::string, NpyArray, std::less<>> arrays_;
};

}  // namespace topknot::test
