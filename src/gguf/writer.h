// Builds a GGUF file whose tensors are in memory: metadata and tensors in the order they were
// added. Little-endian. A part of a split model is written by adding its split.* keys like any
// others. For models that are made or copied piece by piece there is stream_writer.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/encoder.h"
#include "tensor/dtype.h"
#include "topknot/error.h"

namespace topknot::gguf {

struct WriterOptions {
  uint32_t version = 3;                    // written as given
  uint64_t alignment = kDefaultAlignment;  // a power of two; its key is added when not the default
};

class Writer : public MetadataEncoder {
 public:
  explicit Writer(WriterOptions options = {});

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

  std::vector<std::byte> header() const;

  WriterOptions options_;
  std::vector<Tensor> tensors_;
};

}  // namespace topknot::gguf
