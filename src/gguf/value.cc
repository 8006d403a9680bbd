// Metadata values read as the type a caller needs, and printed for people.
#include <cstring>
#include <limits>

#include "base/strings.h"
#include "gguf/model_file.h"

namespace topknot::gguf {
namespace {

constexpr uint64_t kMaxSigned = std::numeric_limits<int64_t>::max();

template <class T>
T load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// Element i of a packed array as a Value; none out of range or for strings and arrays.
std::optional<Value> fixed_element(const Array& array, uint64_t i) {
  const uint64_t width = value_type_bytes(array.element_type);
  if (width == 0 || i >= array.count) return std::nullopt;
  const std::byte* const at = array.bytes.data() + i * width;
  const auto value = [&](Value::Storage storage) { return Value(array.element_type, storage); };
  switch (array.element_type) {
    case ValueType::kU8: return value(uint64_t{load<uint8_t>(at)});
    case ValueType::kI8: return value(int64_t{load<int8_t>(at)});
    case ValueType::kU16: return value(uint64_t{load<uint16_t>(at)});
    case ValueType::kI16: return value(int64_t{load<int16_t>(at)});
    case ValueType::kU32: return value(uint64_t{load<uint32_t>(at)});
    case ValueType::kI32: return value(int64_t{load<int32_t>(at)});
    case ValueType::kF32: return value(double{load<float>(at)});
    case ValueType::kBool: return value(load<uint8_t>(at) != 0);
    case ValueType::kU64: return value(load<uint64_t>(at));
    case ValueType::kI64: return value(load<int64_t>(at));
    case ValueType::kF64: return value(load<double>(at));
    case ValueType::kString:
    case ValueType::kArray: break;
  }
  return std::nullopt;
}

std::string element_text(const Array& array, uint64_t i, size_t max_bytes) {
  if (array.element_type == ValueType::kString) {
    return cat('"', printable(array.strings[i], max_bytes), '"');
  }
  if (array.element_type == ValueType::kArray) return array.arrays[i].to_string(max_bytes);
  return fixed_element(array, i)->to_string(max_bytes);
}

std::string array_text(const Array& array, size_t max_bytes) {
  std::string out = cat('[', value_type_name(array.element_type), " x ", array.count, ']');
  for (uint64_t i = 0; i < array.count; ++i) {
    const std::string element = cat(i == 0 ? " " : ", ", element_text(array, i, max_bytes));
    if (out.size() + element.size() > max_bytes) return out + (i == 0 ? " ..." : ", ...");
    out += element;
  }
  return out;
}

std::string scalar_text(ValueType type, const Value::Storage& storage, size_t max_bytes) {
  if (const auto* text = std::get_if<std::string_view>(&storage))
    return printable(*text, max_bytes);
  if (const auto* flag = std::get_if<bool>(&storage)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<uint64_t>(&storage)) return cat(*number);
  if (const auto* number = std::get_if<int64_t>(&storage)) return cat(*number);
  // The shortest text that reads back as the same float: 1e-05, not 9.999999747378752e-06.
  const double number = std::get<double>(storage);
  return type == ValueType::kF32 ? cat(static_cast<float>(number)) : cat(number);
}

}  // namespace

const char* value_type_name(ValueType type) {
  switch (type) {
    case ValueType::kU8: return "u8";
    case ValueType::kI8: return "i8";
    case ValueType::kU16: return "u16";
    case ValueType::kI16: return "i16";
    case ValueType::kU32: return "u32";
    case ValueType::kI32: return "i32";
    case ValueType::kF32: return "f32";
    case ValueType::kBool: return "bool";
    case ValueType::kString: return "str";
    case ValueType::kArray: return "arr";
    case ValueType::kU64: return "u64";
    case ValueType::kI64: return "i64";
    case ValueType::kF64: return "f64";
  }
  return "unknown";
}

uint64_t value_type_bytes(ValueType type) {
  switch (type) {
    case ValueType::kU8:
    case ValueType::kI8:
    case ValueType::kBool: return 1;
    case ValueType::kU16:
    case ValueType::kI16: return 2;
    case ValueType::kU32:
    case ValueType::kI32:
    case ValueType::kF32: return 4;
    case ValueType::kU64:
    case ValueType::kI64:
    case ValueType::kF64: return 8;
    case ValueType::kString:
    case ValueType::kArray: break;
  }
  return 0;
}

std::optional<uint64_t> Value::as_unsigned() const {
  if (const auto* number = std::get_if<uint64_t>(&storage_)) return *number;
  if (const auto* flag = std::get_if<bool>(&storage_)) return *flag ? 1 : 0;
  const auto* number = std::get_if<int64_t>(&storage_);
  if (number == nullptr || *number < 0) return std::nullopt;
  return static_cast<uint64_t>(*number);
}

std::optional<int64_t> Value::as_signed() const {
  if (const auto* number = std::get_if<int64_t>(&storage_)) return *number;
  if (const auto* flag = std::get_if<bool>(&storage_)) return *flag ? 1 : 0;
  const auto* number = std::get_if<uint64_t>(&storage_);
  if (number == nullptr || *number > kMaxSigned) return std::nullopt;
  return static_cast<int64_t>(*number);
}

std::optional<double> Value::as_number() const {
  if (const auto* number = std::get_if<double>(&storage_)) return *number;
  if (const auto* number = std::get_if<uint64_t>(&storage_)) return static_cast<double>(*number);
  if (const auto* number = std::get_if<int64_t>(&storage_)) return static_cast<double>(*number);
  return std::nullopt;
}

std::optional<bool> Value::as_bool() const {
  const std::optional<uint64_t> number = as_unsigned();
  if (!number || *number > 1) return std::nullopt;
  return *number == 1;
}

std::optional<std::string_view> Value::as_string() const {
  const auto* const text = std::get_if<std::string_view>(&storage_);
  return text == nullptr ? std::nullopt : std::optional(*text);
}

const Array* Value::as_array() const { return std::get_if<Array>(&storage_); }

std::optional<uint64_t> Value::element_unsigned(const Array& array, uint64_t i) {
  const std::optional<Value> value = fixed_element(array, i);
  return value ? value->as_unsigned() : std::nullopt;
}

std::optional<int64_t> Value::element_signed(const Array& array, uint64_t i) {
  const std::optional<Value> value = fixed_element(array, i);
  return value ? value->as_signed() : std::nullopt;
}

std::optional<double> Value::element_number(const Array& array, uint64_t i) {
  const std::optional<Value> value = fixed_element(array, i);
  return value ? value->as_number() : std::nullopt;
}

std::string Value::to_string(size_t max_bytes) const {
  const Array* const array = as_array();
  std::string out =
      array != nullptr ? array_text(*array, max_bytes) : scalar_text(type_, storage_, max_bytes);
  // Escapes may have made it longer.
  if (out.size() <= max_bytes + 5) return out;
  out.resize(max_bytes);
  out.resize(complete_utf8_prefix(out));
  return out + "...";
}

std::string shape_string(const TensorInfo& tensor) {
  std::string out = "{";
  for (uint32_t i = 0; i < tensor.dims; ++i) out += cat(i == 0 ? "" : ", ", tensor.ne[i]);
  return out + "}";
}

}  // namespace topknot::gguf
