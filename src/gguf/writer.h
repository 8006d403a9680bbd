// Builds a GGUF file: metadata and tensors in the order they were added. Little-endian.
// A part of a split model is written by adding its split.* keys like any others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "gguf/model_file.h"
#include "tensor/dtype.h"
#include "topknot/error.h"

namespace topknot::gguf {

template <class T>
constexpr ValueType value_type_of() {
  if constexpr (std::is_same_v<T, uint8_t>)
    return ValueType::kU8;
  else if constexpr (std::is_same_v<T, int8_t>)
    return ValueType::kI8;
  else if constexpr (std::is_same_v<T, uint16_t>)
    return ValueType::kU16;
  else if constexpr (std::is_same_v<T, int16_t>)
    return ValueType::kI16;
  else if constexpr (std::is_same_v<T, uint32_t>)
    return ValueType::kU32;
  else if constexpr (std::is_same_v<T, int32_t>)
    return ValueType::kI32;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return ValueType::kU64;
  else if constexpr (std::is_same_v<T, int64_t>)
    return ValueType::kI64;
  else if constexpr (std::is_same_v<T, float>)
    return ValueType::kF32;
  else if constexpr (std::is_same_v<T, double>)
    return ValueType::kF64;
  else {
    static_assert(std::is_same_v<T, bool>, "GGUF has no such type");
    return ValueType::kBool;
  }
}

struct WriterOptions {
  uint32_t version = 3;                    // written as given
  uint64_t alignment = kDefaultAlignment;  // a power of two; its key is added when not the default
};

class Writer {
 public:
  explicit Writer(WriterOptions options = {});

  // The C++ type decides the file's: add("n", uint32_t{3}) writes a u32. Keys are written as often
  // as they are added.
  template <class T>
  void add(std::string_view key, T value) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
    add_encoded(key, value_type_of<T>(), {bytes, sizeof(T)});
  }
  template <class T>
  void add_array(std::string_view key, std::span<const T> elements) {
    const auto bytes = std::as_bytes(elements);
    Array array{.element_type = value_type_of<T>(), .count = elements.size(), .bytes = bytes};
    add_value(key, Value(ValueType::kArray, std::move(array)));
  }
  void add_string(std::string_view key, std::string_view text);
  void add_strings(std::string_view key, std::span<const std::string> texts);
  // Any value of a model that was read, arrays of arrays too, with its type.
  void add_value(std::string_view key, const Value& value);

  // `data` must stay valid until the file is written, and have the bytes that type and shape need.
  void add_tensor(std::string_view name, tensor::DType type, std::span<const uint64_t> ne,
                  std::span<const std::byte> data);
  // The same with nothing checked: for types this build does not know, and for tests of readers.
  void add_tensor_unchecked(std::string_view name, uint32_t type_id, std::span<const uint64_t> ne,
                            std::span<const std::byte> data);

  std::vector<std::byte> to_bytes() const;
  // Writes to "<path>.partial" and renames it, so that a half-written model never has the final
  // name.
  Status write(const std::string& path) const;

 private:
  struct Tensor {
    std::string name;
    uint32_t type_id;
    std::vector<uint64_t> ne;
    std::span<const std::byte> data;
  };

  void add_encoded(std::string_view key, ValueType type, std::span<const std::byte> payload);
  std::vector<std::byte> header() const;  // padded to the alignment when there are tensors
  uint64_t padded(uint64_t bytes) const;

  WriterOptions options_;
  uint64_t keys_ = 0;
  std::vector<std::byte> metadata_;  // encoded
  std::vector<Tensor> tensors_;
};

}  // namespace topknot::gguf
