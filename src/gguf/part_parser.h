// The header of one GGUF file, checked against the file's real size.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "gguf/model_file.h"
#include "gguf/problems.h"

namespace topknot::gguf {

struct ParsedPart {
  Part part;
  std::vector<KeyValue> metadata;
  std::vector<TensorInfo> tensors;  // in file order; only those whose type and shape are sound
  bool complete = false;            // the header could be read to its end

  const Value* find_key(std::string_view key) const;
};

// Views in the result point into `bytes`. TensorInfo::part is left 0.
//
//   0  4  "GGUF"
//   4  4  u32 version, 2 or 3
//   8  8  u64 tensor count
//  16  8  u64 metadata count, then per entry: string key, u32 type, value
//         per tensor: string name, u32 dims, u64 ne[dims], u32 type, u64 offset from data_begin
//         padding to the alignment, then tensor data at data_begin
// string: u64 bytes, then the bytes. array: u32 element type, u64 count, packed elements.
ParsedPart parse_part(std::span<const std::byte> bytes, const std::string& path,
                      Problems* problems);

}  // namespace topknot::gguf
