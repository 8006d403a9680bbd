// A GGUF model opened for reading: one file or all its split parts, memory-mapped, headers checked.
// The only code that knows ne[] order, alignment and splitting.
//
// Every length from the file is bounded before it is used; nothing is allocated in proportion to a
// number the file merely claims. All problems of a file are reported in one Error.
// Source: ggml docs/gguf.md (versions 2 and 3, little-endian).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/mapped_file.h"
#include "tensor/dtype.h"
#include "topknot/error.h"

namespace topknot::gguf {

inline constexpr uint64_t kMaxKeyBytes = 65'535;
inline constexpr uint64_t kMaxKeys = 1 << 16;
inline constexpr uint64_t kMaxTensors = 1 << 20;
inline constexpr uint64_t kMaxTensorNameBytes = 256;  // ggml writes at most 64
inline constexpr uint64_t kMaxStringBytes = 64 << 20;
inline constexpr uint64_t kMaxArrayElements = 1 << 28;
inline constexpr uint32_t kMaxArrayDepth = 4;
inline constexpr uint64_t kMaxNestedArrays = 1 << 16;  // arrays within one array
inline constexpr uint32_t kMaxParts = 65'535;
inline constexpr uint64_t kDefaultAlignment = 32;
inline constexpr uint64_t kMaxAlignment = 1 << 30;
inline constexpr size_t kMaxReportedProblems = 20;  // lines of one Error
inline constexpr size_t kMaxDirectoryEntries = 100'000;

enum class ValueType : uint32_t {
  kU8 = 0,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

// A metadata value. Numbers keep their file type; arrays stay in the mapped file and are read on
// demand.
class Value;
struct Array {
  ValueType element_type = ValueType::kU8;
  uint64_t count = 0;
  std::span<const std::byte> bytes;       // packed elements of a fixed-width type
  std::vector<std::string_view> strings;  // for kString
  std::vector<Value> arrays;              // for kArray
};
class Value {
 public:
  using Storage = std::variant<uint64_t, int64_t, double, bool, std::string_view, Array>;
  Value(ValueType type, Storage storage) : type_(type), storage_(std::move(storage)) {}
  ValueType type() const { return type_; }

  // Any integer width (and bool as 0/1); none if negative or of another type.
  std::optional<uint64_t> as_unsigned() const;
  std::optional<int64_t> as_signed() const;
  std::optional<double> as_number() const;  // any integer or float
  std::optional<bool> as_bool() const;      // bool, or an integer 0/1
  std::optional<std::string_view> as_string() const;
  const Array* as_array() const;
  // Element i of a numeric or bool array, as above; none out of range or of another type.
  static std::optional<uint64_t> element_unsigned(const Array& array, uint64_t i);
  static std::optional<int64_t> element_signed(const Array& array, uint64_t i);
  static std::optional<double> element_number(const Array& array, uint64_t i);
  // For people: short, printable, arrays as "[u32 x 79] 1, 0, 0, ...".
  std::string to_string(size_t max_bytes = 100) const;

 private:
  ValueType type_;
  Storage storage_;
};

const char* value_type_name(ValueType type);  // "u32", "str", "arr"
uint64_t value_type_bytes(ValueType type);    // of one element; 0 for strings and arrays

struct KeyValue {
  std::string_view key;
  Value value;
};

struct TensorInfo {
  std::string_view name;
  tensor::DType type = tensor::DType::kF32;
  uint32_t dims = 0;                          // 1 to 4
  std::array<uint64_t, 4> ne = {1, 1, 1, 1};  // ne[0] is contiguous; dims not stored are 1
  uint64_t bytes = 0;
  uint32_t part = 0;                // index into parts()
  uint64_t file_offset = 0;         // absolute in that part
  const std::byte* data = nullptr;  // in the mapping
  uint64_t elements() const { return ne[0] * ne[1] * ne[2] * ne[3]; }
};

std::string shape_string(const TensorInfo& tensor);  // "{192, 512, 4}" in ne order

struct Part {
  std::string path;
  uint64_t bytes = 0;
  uint64_t tensors = 0;
  uint32_t version = 0;
  uint64_t alignment = kDefaultAlignment;  // each part has its own
  uint64_t data_begin = 0;                 // absolute; the header ends at or before it
};

// Replaces or adds a scalar key before the model is read from: `--override-kv KEY=TYPE:VALUE` with
// TYPE int, float, bool or str, as llama.cpp spells it. Keys that describe the file rather than the
// model (general.alignment, split.*) are refused. Of several for one key the last one counts.
struct Override {
  std::string key;
  std::variant<int64_t, double, bool, std::string> value;
  static Result<Override> parse(std::string_view text);
};

class ModelFile {
 public:
  // `path`: a .gguf file, any part of a split model, or a directory that holds exactly one model
  // (files named mtp-*.gguf beside it are not models). Metadata is that of the first part.
  //   kNotFound     no such file, a missing part (named), a directory without a model
  //   kUnsupported  GGUF 1, big-endian, or a tensor type this build has never heard of
  //   kCorrupt      anything else that is wrong with the bytes
  // Types that are known but not decoded are no error here: whoever computes with them says so.
  static Result<ModelFile> open(const std::string& path, std::span<const Override> overrides = {});
  // One part from memory, not split: for tests and fuzzing. `bytes` must outlive the result.
  static Result<ModelFile> from_memory(std::span<const std::byte> bytes, std::string name,
                                       std::span<const Override> overrides = {});

  std::span<const KeyValue> metadata() const { return metadata_; }
  const Value* find_key(std::string_view key) const;  // exact
  std::span<const TensorInfo> tensors() const { return tensors_; }
  const TensorInfo* find_tensor(std::string_view name) const;  // exact
  std::span<const Part> parts() const { return parts_; }
  uint64_t total_bytes() const;
  const std::string& path_of(const TensorInfo& tensor) const { return parts_[tensor.part].path; }
  const std::string& path() const { return parts_.front().path; }

 private:
  friend class Reader;
  ModelFile() = default;
  std::vector<MappedFile> files_;
  std::vector<Part> parts_;
  std::vector<KeyValue> metadata_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string_view, size_t> tensor_index_;
  std::unordered_map<std::string_view, size_t> key_index_;
  std::vector<std::unique_ptr<std::string>> owned_;  // text of overrides
};

}  // namespace topknot::gguf
