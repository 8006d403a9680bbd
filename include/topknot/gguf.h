// A GGUF model as plain data: metadata, tensors, their bytes, and their rows decoded to fp32. One
// file, or all parts of a split one. Files are memory-mapped: nothing but headers is read until
// bytes are touched.
//
//   auto model = topknot::GgufModel::open("model-00001-of-00010.gguf");
//   auto name = model->text("general.architecture");
//   std::vector<float> row(6144);
//   auto done = model->decode_rows("token_embd.weight", 42, row);
//
// Every number of a file is checked before it is used, so whatever the file says, the views below
// lie inside it. A file that is changed or cut short while it is open is not guarded against: the
// system ends a program that touches a mapped page that is gone (SIGBUS).
// Views and pointers live as long as the model they come from, also after it was moved. Any number
// of threads may use one model at a time; nothing of it changes after open().
// Format: ggml's docs/gguf.md, versions 2 and 3, little-endian; docs/spec/gguf.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topknot/error.h"
#include "topknot/export.h"

namespace topknot {

struct GgufPart {
  std::string path;
  uint64_t bytes = 0;  // of the file
  uint64_t tensors = 0;
};

struct GgufKey {
  std::string_view name;  // may hold any bytes
  std::string_view type;  // "u32", "f32", "bool", "str", "arr", ...
  std::string value;      // for people: printable, cut short; "[u32 x 79] 1, 0, 0, ..."
};

// A tensor of `rows` rows, one after the other in `data`, each in the type's blocks.
struct GgufTensor {
  std::string_view name;
  std::string_view type;        // as ggml spells it: "F32", "BF16", "Q4_K"
  std::vector<uint64_t> shape;  // 1 to 4 sizes, outer to inner: ne[] of the file in reverse
  uint64_t row_elements = 0;    // shape.back(), contiguous
  uint64_t rows = 0;            // of all outer dimensions together
  uint64_t row_bytes = 0;
  uint64_t bytes = 0;               // rows * row_bytes
  uint32_t part = 0;                // index into parts()
  uint64_t file_offset = 0;         // of the first byte, in that part
  bool decoded = false;             // decode_rows() knows the type
  const std::byte* data = nullptr;  // mapped, read-only, aligned as the file is (usually 32 bytes)
};

class TOPKNOT_API GgufModel {
 public:
  // `path`: a .gguf file, any part of a split model, or a directory that holds exactly one model.
  // `override_kv`: "KEY=TYPE:VALUE" with TYPE int, float, bool or str, in place of the file's keys.
  //   kNotFound         no such file, a missing part (named), a directory without a model
  //   kInvalidArgument  an override that cannot be read
  //   kUnsupported      GGUF 1, big-endian, or a tensor type this version has never heard of
  //   kCorrupt          anything else that is wrong with the bytes; all of it in one Error
  //   kIo               the system refuses to read the file
  static Result<GgufModel> open(const std::string& path,
                                const std::vector<std::string>& override_kv = {});
  // One that was moved from may only be assigned to or destroyed.
  GgufModel(GgufModel&&) noexcept;
  GgufModel& operator=(GgufModel&&) noexcept;
  ~GgufModel();

  const std::vector<GgufPart>& parts() const;

  // Metadata of the first part, in the order of the file.
  const std::vector<GgufKey>& keys() const;
  bool has_key(std::string_view key) const;

  // One value of metadata, whatever width the file gave it. kNotFound when there is no such key
  // (the nearest are named); kInvalidArgument when it has another type (named); kOutOfRange for an
  // integer that int64_t does not hold.
  Result<int64_t> integer(std::string_view key) const;  // of any integer type or bool (0, 1)
  Result<double> number(std::string_view key) const;    // of any integer or float type
  Result<bool> boolean(std::string_view key) const;     // bool, or an integer 0 or 1
  Result<std::string_view> text(std::string_view key) const;
  // Arrays of them, with the same errors.
  Result<std::vector<int64_t>> integers(std::string_view key) const;
  Result<std::vector<double>> numbers(std::string_view key) const;
  Result<std::vector<std::string_view>> texts(std::string_view key) const;

  // In the order of the files.
  const std::vector<GgufTensor>& tensors() const;
  // Never null; kNotFound names the nearest.
  Result<const GgufTensor*> tensor(std::string_view name) const;

  // Decodes rows first_row, first_row + 1, ... of the tensor `name` until `out`
  // f32 [count, row_elements] is full.
  //   kNotFound         no such tensor
  //   kUnsupported      its type is not decoded by this version (GgufTensor::decoded)
  //   kInvalidArgument  out.size() is not whole rows
  //   kOutOfRange       rows beyond the last
  Status decode_rows(std::string_view name, uint64_t first_row, std::span<float> out) const;

 private:
  struct State;
  explicit GgufModel(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace topknot
