// For the tests and the fuzz target of this folder: files that are valid, files with any field
// wrong, and a walk that touches everything a model offers.
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/model_file.h"
#include "gguf/writer.h"

namespace topknot::gguf {

using Bytes = std::vector<std::byte>;

// Reads the first and last byte of each tensor and prints each value, so that a sanitizer sees any
// view that leaves the file. The result only keeps the reads from being optimised away.
inline uint64_t read_everything(const ModelFile& model) {
  uint64_t sum = model.total_bytes();
  for (const TensorInfo& tensor : model.tensors()) {
    sum += static_cast<uint64_t>(tensor.data[0]);
    sum += static_cast<uint64_t>(tensor.data[tensor.bytes - 1]);
    sum += shape_string(tensor).size() + tensor.elements();
    sum += model.find_tensor(tensor.name)->part;
  }
  for (const KeyValue& entry : model.metadata()) {
    sum += entry.value.to_string().size() + entry.value.to_string(3).size();
    sum += model.find_key(entry.key)->as_unsigned().value_or(0);
    if (const Array* array = entry.value.as_array(); array != nullptr && array->count > 0) {
      sum += Value::element_unsigned(*array, array->count - 1).value_or(0);
      sum += Value::element_number(*array, array->count - 1).has_value() ? 1 : 0;
    }
  }
  return sum;
}

// A valid model with every value type, nested arrays, several tensor types, names and values that
// are no UTF-8.
inline Bytes sample_model(WriterOptions options = {}) {
  Writer writer(options);
  writer.add_string("general.architecture", "glm-dsa");
  writer.add("t.u8", uint8_t{200});
  writer.add("t.i8", int8_t{-100});
  writer.add("t.u16", uint16_t{60000});
  writer.add("t.i16", int16_t{-30000});
  writer.add("t.u32", uint32_t{4'000'000'000});
  writer.add("t.i32", int32_t{-2'000'000'000});
  writer.add("t.u64", uint64_t{1} << 63);
  writer.add("t.i64", -(int64_t{1} << 62));
  writer.add("t.f32", 1e-5F);
  writer.add("t.f64", 0.1);
  writer.add("t.bool", true);
  writer.add_string("t.bytes", std::string_view("a\0b\xFFz", 5));
  writer.add_array<int32_t>("t.i32s", std::vector<int32_t>{1, -2, 3});
  writer.add_array<uint8_t>("t.flags", std::vector<uint8_t>{1, 0, 1});
  writer.add_strings("t.strings", std::vector<std::string>{"one", "", std::string("t\0wo", 4)});
  const std::byte packed[4] = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  const Value inner(ValueType::kArray,
                    Array{.element_type = ValueType::kU16, .count = 2, .bytes = packed});
  writer.add_value("t.nested", Value(ValueType::kArray, Array{.element_type = ValueType::kArray,
                                                              .count = 2,
                                                              .arrays = {inner, inner}}));
  Bytes data(512);
  for (size_t i = 0; i < data.size(); ++i) data[i] = std::byte(i);
  const std::span<const std::byte> all(data);
  const uint64_t vector[] = {3};
  const uint64_t matrix[] = {32, 3};
  const uint64_t experts[] = {256, 1, 2};
  writer.add_tensor("norm.weight", tensor::DType::kF32, vector, all.first(12));
  writer.add_tensor("blk.0.q.weight", tensor::DType::kQ8_0, matrix, all.first(102));
  writer.add_tensor("blk.0.exps.weight", tensor::DType::kQ4_K, experts, all.first(288));
  writer.add_tensor("blk.0.iq.weight", tensor::DType::kIQ4_NL, matrix, all.first(54));
  return writer.to_bytes();
}

// A file spelled out field by field, so that each can be wrong. Fields are strings of raw bytes.
template <class T>
std::string raw(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}
inline std::string raw_string(std::string_view text) {
  return raw(uint64_t{text.size()}) + std::string(text);
}

struct RawFile {
  std::string magic = "GGUF";
  uint32_t version = 3;
  std::optional<uint64_t> key_count;  // set: claimed instead of the true one
  std::optional<uint64_t> tensor_count;
  size_t data_bytes = 0;  // after the header, padded to `alignment`
  size_t alignment = kDefaultAlignment;

  RawFile& key(std::string_view name, ValueType type, const std::string& payload) {
    return key_of_type(name, static_cast<uint32_t>(type), payload);
  }
  RawFile& key_of_type(std::string_view name, uint32_t type, const std::string& payload) {
    metadata += raw_string(name) + raw(type) + payload;
    ++keys;
    return *this;
  }
  RawFile& tensor(std::string_view name, const std::vector<uint64_t>& ne, uint32_t type,
                  uint64_t offset) {
    infos += raw_string(name) + raw(static_cast<uint32_t>(ne.size()));
    for (const uint64_t n : ne) infos += raw(n);
    infos += raw(type) + raw(offset);
    ++tensors;
    return *this;
  }
  Bytes bytes() const {
    std::string out = magic + raw(version) + raw(tensor_count.value_or(tensors)) +
                      raw(key_count.value_or(keys)) + metadata + infos;
    if (data_bytes > 0) out.resize((out.size() + alignment - 1) / alignment * alignment);
    out.resize(out.size() + data_bytes, '\x5A');
    const auto view = std::as_bytes(std::span(out));
    return Bytes(view.begin(), view.end());
  }

  std::string metadata;
  std::string infos;
  uint64_t keys = 0;
  uint64_t tensors = 0;
};

// The payload of an array whose elements are `depth` - 1 arrays deep, one element each.
inline std::string nested_arrays(uint32_t depth) {
  std::string out = raw(static_cast<uint32_t>(ValueType::kU8)) + raw(uint64_t{1}) + "\x07";
  for (uint32_t i = 1; i < depth; ++i) {
    out = raw(static_cast<uint32_t>(ValueType::kArray)) + raw(uint64_t{1}) + out;
  }
  return out;
}

}  // namespace topknot::gguf
