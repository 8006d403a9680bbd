#include "gguf/writer.h"

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/assert.h"
#include "base/strings.h"

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

class OutputFile {
 public:
  explicit OutputFile(const std::string& path) : file_(std::fopen(path.c_str(), "wbe")) {}
  ~OutputFile() {
    if (file_ != nullptr) std::fclose(file_);
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  bool is_open() const { return file_ != nullptr; }
  bool write(std::span<const std::byte> bytes) {
    return std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size();
  }
  bool close() { return std::fclose(std::exchange(file_, nullptr)) == 0; }

 private:
  std::FILE* file_;
};

Error cannot_write(const std::string& path, int error) {
  return Error{.code = Code::kIo,
               .what = "cannot write the model",
               .where = printable(path, 4096),
               .why = std::strerror(error),
               .fix = "check the directory, its permissions and the space left"};
}

}  // namespace

Writer::Writer(WriterOptions options) : options_(options) {
  TOPKNOT_ASSERT(std::has_single_bit(options.alignment) && options.alignment <= kMaxAlignment);
  if (options.alignment != kDefaultAlignment) {
    add("general.alignment", static_cast<uint32_t>(options.alignment));
  }
}

void Writer::add_encoded(std::string_view key, ValueType type, std::span<const std::byte> payload) {
  put_string(&metadata_, key);
  put(&metadata_, static_cast<uint32_t>(type));
  put_bytes(&metadata_, payload);
  ++keys_;
}

void Writer::add_string(std::string_view key, std::string_view text) {
  add_value(key, Value(ValueType::kString, text));
}

void Writer::add_strings(std::string_view key, std::span<const std::string> texts) {
  Array array{.element_type = ValueType::kString, .count = texts.size()};
  array.strings.assign(texts.begin(), texts.end());
  add_value(key, Value(ValueType::kArray, std::move(array)));
}

void Writer::add_value(std::string_view key, const Value& value) {
  Bytes payload;
  put_value(&payload, value);
  add_encoded(key, value.type(), payload);
}

void Writer::add_tensor(std::string_view name, tensor::DType type, std::span<const uint64_t> ne,
                        std::span<const std::byte> data) {
  TOPKNOT_ASSERT(!ne.empty() && ne.size() <= 4);
  uint64_t rows = 1;
  for (const uint64_t n : ne.subspan(1)) rows *= n;
  TOPKNOT_ASSERT(data.size() == rows * tensor::row_bytes(type, ne[0]));
  add_tensor_unchecked(name, static_cast<uint32_t>(type), ne, data);
}

void Writer::add_tensor_unchecked(std::string_view name, uint32_t type_id,
                                  std::span<const uint64_t> ne, std::span<const std::byte> data) {
  tensors_.push_back({std::string(name), type_id, {ne.begin(), ne.end()}, data});
}

uint64_t Writer::padded(uint64_t bytes) const {
  return (bytes + options_.alignment - 1) & ~(options_.alignment - 1);
}

std::vector<std::byte> Writer::header() const {
  Bytes out;
  put_bytes(&out, std::as_bytes(std::span(std::string_view("GGUF"))));
  put(&out, options_.version);
  put(&out, uint64_t{tensors_.size()});
  put(&out, keys_);
  put_bytes(&out, metadata_);
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    put_string(&out, tensor.name);
    put(&out, static_cast<uint32_t>(tensor.ne.size()));
    for (const uint64_t n : tensor.ne) put(&out, n);
    put(&out, tensor.type_id);
    put(&out, offset);
    offset += padded(tensor.data.size());
  }
  if (!tensors_.empty()) out.resize(padded(out.size()));
  return out;
}

std::vector<std::byte> Writer::to_bytes() const {
  Bytes out = header();
  for (const Tensor& tensor : tensors_) {
    put_bytes(&out, tensor.data);
    out.resize(padded(out.size()));
  }
  return out;
}

Status Writer::write(const std::string& path) const {
  const std::string partial = path + ".partial";
  const Bytes padding(options_.alignment);
  OutputFile file(partial);
  bool good = file.is_open() && file.write(header());
  for (size_t i = 0; good && i < tensors_.size(); ++i) {
    const auto data = tensors_[i].data;
    good =
        file.write(data) && file.write(std::span(padding).first(padded(data.size()) - data.size()));
  }
  good = good && file.close() && std::rename(partial.c_str(), path.c_str()) == 0;
  if (good) return {};
  Error error = cannot_write(path, errno);
  std::remove(partial.c_str());
  return error;
}

}  // namespace topknot::gguf
