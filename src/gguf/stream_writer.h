// Writes models too large for memory: metadata and the list of tensors are known first, the bytes
// of each tensor are asked for afterwards, in pieces. One file, or the parts of a split model.
//
// Files are written under "<name>.partial" and renamed when all of them are whole; on any error
// nothing is left behind. A run that is killed leaves only partial files, which the next run over
// the same names overwrites.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gguf/encoder.h"
#include "tensor/dtype.h"
#include "topknot/error.h"

namespace topknot::gguf {

inline constexpr size_t kMaxPieceBytes = 16 << 20;  // of a tensor, asked for at once

struct TensorSpec {
  std::string name;
  tensor::DType type = tensor::DType::kF32;
  uint32_t dims = 1;
  std::array<uint64_t, 4> ne = {1, 1, 1, 1};  // ne[0] is contiguous; 1 from dims on
};

// Of a tensor that check_tensors() accepts.
uint64_t tensor_bytes(const TensorSpec& tensor);
uint64_t tensor_elements(const TensorSpec& tensor);

struct SplitLimits {
  uint64_t max_tensors = 0;          // in a part; 0: no limit
  uint64_t max_bytes = 0;            // of a part; 0: no limit. A larger tensor gets its own part
  bool metadata_only_first = false;  // all tensors in the second part and on
  bool any() const { return max_tensors > 0 || max_bytes > 0 || metadata_only_first; }
};

struct StreamOptions {
  SplitLimits split;
  // Nothing but headers is written, and the files are extended to their size: sparse files, with
  // tensors of zeros that take no space. The source is not called.
  bool headers_only = false;
  bool force = false;  // overwrite files that are there
};

// One file to be, with its size known beforehand.
struct PlannedPart {
  std::string path;
  size_t first_tensor = 0;
  size_t tensors = 0;
  uint64_t header_bytes = 0;  // with its padding: where the data begin
  uint64_t bytes = 0;         // of the whole file
};

// Writes bytes [offset, offset + out.size()) of tensors[index] into `out`; both are multiples of
// the type's block. Called in the order of the tensors and offsets. An error ends the writing and
// is returned.
using TensorSource = std::function<Status(size_t index, uint64_t offset, std::span<std::byte> out)>;

// The parts and their sizes; writes nothing. With any split limit the names are
// "<prefix>-00001-of-00002.gguf" and so on, also for a single part, and split.no, split.count and
// split.tensors.count are added to the metadata; without, the name is "<prefix>.gguf". `path` may
// be given with or without ".gguf".
//   kInvalidArgument  a tensor without a name, with no elements, with rows that are no whole
//                     blocks, or there twice; more parts than kMaxParts
Result<std::vector<PlannedPart>> plan_parts(const std::string& path,
                                            const MetadataEncoder& metadata,
                                            std::span<const TensorSpec> tensors,
                                            const SplitLimits& split);

// Plans and writes. Before anything is written:
//   kInvalidArgument  as above; a file of a final name is there and `force` is not set
//   kResource         the file system has less space than the files need (not for headers only)
//   kNotFound         the directory is not there
// kResource and kIo while writing.
Result<std::vector<PlannedPart>> write_model(const std::string& path,
                                             const MetadataEncoder& metadata,
                                             std::span<const TensorSpec> tensors,
                                             const TensorSource& source,
                                             const StreamOptions& options);

}  // namespace topknot::gguf
