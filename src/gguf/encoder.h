// The bytes of a GGUF header: what the writers of this folder share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "gguf/model_file.h"

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

// Metadata keys in the order they are added, kept in the form of the file; nothing added needs to
// live on.
class MetadataEncoder {
 public:
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
  // All keys of another one.
  void append(const MetadataEncoder& other);

  uint64_t keys() const { return keys_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  void add_encoded(std::string_view key, ValueType type, std::span<const std::byte> payload);

  uint64_t keys_ = 0;
  std::vector<std::byte> bytes_;
};

struct EncodedTensor {
  std::string_view name;
  uint32_t type_id = 0;
  std::span<const uint64_t> ne;
  uint64_t offset = 0;  // from the begin of the data
};

// Padded to the alignment when there are tensors.
std::vector<std::byte> encode_header(uint32_t version, uint64_t alignment,
                                     const MetadataEncoder& metadata,
                                     std::span<const EncodedTensor> tensors);

// Bytes of one tensor's entry in a header.
uint64_t tensor_entry_bytes(std::string_view name, size_t dims);

inline constexpr uint64_t kHeaderPrefixBytes = 24;  // magic, version, two counts

constexpr uint64_t align_up(uint64_t bytes, uint64_t alignment) {
  return (bytes + alignment - 1) & ~(alignment - 1);
}

}  // namespace topknot::gguf
