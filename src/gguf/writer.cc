#include "gguf/writer.h"

#include <bit>

#include "base/assert.h"
#include "base/try.h"
#include "gguf/output_file.h"

namespace topknot::gguf {

Writer::Writer(WriterOptions options) : options_(options) {
  TOPKNOT_ASSERT(std::has_single_bit(options.alignment) && options.alignment <= kMaxAlignment);
  if (options.alignment != kDefaultAlignment) {
    add("general.alignment", static_cast<uint32_t>(options.alignment));
  }
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

std::vector<std::byte> Writer::header() const {
  std::vector<EncodedTensor> encoded;
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    encoded.push_back(
        {.name = tensor.name, .type_id = tensor.type_id, .ne = tensor.ne, .offset = offset});
    offset += align_up(tensor.data.size(), options_.alignment);
  }
  return encode_header(options_.version, options_.alignment, *this, encoded);
}

std::vector<std::byte> Writer::to_bytes() const {
  std::vector<std::byte> out = header();
  for (const Tensor& tensor : tensors_) {
    const size_t at = out.size();
    out.resize(at + align_up(tensor.data.size(), options_.alignment));
    std::copy(tensor.data.begin(), tensor.data.end(), out.begin() + static_cast<ptrdiff_t>(at));
  }
  return out;
}

Status Writer::write(const std::string& path) const {
  const std::vector<std::byte> padding(options_.alignment);
  TOPKNOT_TRY(OutputFile file, OutputFile::create(path));
  TOPKNOT_CHECK_OK(file.write(header()));
  for (const Tensor& tensor : tensors_) {
    const size_t padded = align_up(tensor.data.size(), options_.alignment);
    TOPKNOT_CHECK_OK(file.write(tensor.data));
    TOPKNOT_CHECK_OK(file.write(std::span(padding).first(padded - tensor.data.size())));
  }
  return file.commit();
}

}  // namespace topknot::gguf
