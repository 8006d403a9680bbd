#include "gguf/encoder.h"

#include <bit>
#include <cstring>

static_assert(std::endian::native == std::endian::little, "integers are written as they lie");

namespace topknot::gguf {
namespace {

using Bytes = std::vector<std::byte>;

// Not vector::insert: GCC 12 warns of an overflow there that cannot be.
void put_bytes(Bytes* out, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const size_t at = out->size();
  out->resize(at + bytes.size());
  std::memcpy(out->data() + at, bytes.data(), bytes.size());
}

template <class T>
void put(Bytes* out, T value) {
  put_bytes(out, std::as_bytes(std::span(&value, 1)));
}

void put_string(Bytes* out, std::string_view text) {
  put(out, uint64_t{text.size()});
  put_bytes(out, std::as_bytes(std::span(text)));
}

void put_value(Bytes* out, const Value& value);

void put_array(Bytes* out, const Array& array) {
  put(out, static_cast<uint32_t>(array.element_type));
  put(out, array.count);
  put_bytes(out, array.bytes);
  for (const std::string_view text : array.strings) put_string(out, text);
  for (const Value& element : array.arrays) put_value(out, element);
}

void put_value(Bytes* out, const Value& value) {
  const auto integer = [&] { return value.as_signed().value_or(0); };
  switch (value.type()) {
    case ValueType::kU8:
    case ValueType::kI8: return put(out, static_cast<uint8_t>(integer()));
    case ValueType::kU16:
    case ValueType::kI16: return put(out, static_cast<uint16_t>(integer()));
    case ValueType::kU32:
    case ValueType::kI32: return put(out, static_cast<uint32_t>(integer()));
    case ValueType::kI64: return put(out, integer());
    case ValueType::kU64: return put(out, value.as_unsigned().value_or(0));
    case ValueType::kBool: return put(out, static_cast<uint8_t>(integer()));
    case ValueType::kF32: return put(out, static_cast<float>(value.as_number().value_or(0)));
    case ValueType::kF64: return put(out, value.as_number().value_or(0));
    case ValueType::kString: return put_string(out, value.as_string().value_or(""));
    case ValueType::kArray: return put_array(out, *value.as_array());
  }
}

}  // namespace

void MetadataEncoder::add_encoded(std::string_view key, ValueType type,
                                  std::span<const std::byte> payload) {
  put_string(&bytes_, key);
  put(&bytes_, static_cast<uint32_t>(type));
  put_bytes(&bytes_, payload);
  ++keys_;
}

void MetadataEncoder::add_string(std::string_view key, std::string_view text) {
  add_value(key, Value(ValueType::kString, text));
}

void MetadataEncoder::add_strings(std::string_view key, std::span<const std::string> texts) {
  Array array{.element_type = ValueType::kString, .count = texts.size()};
  array.strings.assign(texts.begin(), texts.end());
  add_value(key, Value(ValueType::kArray, std::move(array)));
}

void MetadataEncoder::add_value(std::string_view key, const Value& value) {
  Bytes payload;
  put_value(&payload, value);
  add_encoded(key, value.type(), payload);
}

void MetadataEncoder::append(const MetadataEncoder& other) {
  put_bytes(&bytes_, other.bytes_);
  keys_ += other.keys_;
}

std::vector<std::byte> encode_header(uint32_t version, uint64_t alignment,
                                     const MetadataEncoder& metadata,
                                     std::span<const EncodedTensor> tensors) {
  Bytes out;
  put_bytes(&out, std::as_bytes(std::span(std::string_view("GGUF"))));
  put(&out, version);
  put(&out, uint64_t{tensors.size()});
  put(&out, metadata.keys());
  put_bytes(&out, metadata.bytes());
  for (const EncodedTensor& tensor : tensors) {
    put_string(&out, tensor.name);
    put(&out, static_cast<uint32_t>(tensor.ne.size()));
    for (const uint64_t n : tensor.ne) put(&out, n);
    put(&out, tensor.type_id);
    put(&out, tensor.offset);
  }
  if (!tensors.empty()) out.resize(align_up(out.size(), alignment));
  return out;
}

uint64_t tensor_entry_bytes(std::string_view name, size_t dims) {
  return 8 + name.size() + 4 + 8 * dims + 4 + 8;
}

}  // namespace topknot::gguf
