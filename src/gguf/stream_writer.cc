#include "gguf/stream_writer.h"

#include <filesystem>
#include <unordered_set>

#include "base/checked_math.h"
#include "base/strings.h"
#include "base/try.h"
#include "gguf/output_file.h"
#include "gguf/split_name.h"

namespace topknot::gguf {
namespace {

constexpr std::string_view kExtension = ".gguf";
constexpr uint32_t kVersion = 3;
constexpr uint64_t kAlignment = kDefaultAlignment;

Error bad_tensor(const TensorSpec& tensor, std::string why) {
  return Error{.code = Code::kInvalidArgument,
               .what = cat("tensor '", printable(tensor.name), "' cannot be written"),
               .where = {},
               .why = std::move(why),
               .fix = "give it another name, shape or type"};
}

Status check_tensor(const TensorSpec& tensor) {
  if (tensor.name.empty() || tensor.name.size() > kMaxTensorNameBytes) {
    return bad_tensor(tensor, cat("its name has ", tensor.name.size(), " bytes; 1 to ",
                                  kMaxTensorNameBytes, " are read again"));
  }
  if (tensor.dims < 1 || tensor.dims > 4) {
    return bad_tensor(tensor, cat("it has ", tensor.dims, " dimensions; 1 to 4 exist"));
  }
  const tensor::DTypeInfo& type = tensor::dtype_info(tensor.type);
  uint64_t elements = 1;
  uint64_t bytes = 0;
  bool overflow = false;
  for (const uint64_t n : tensor.ne) overflow |= mul_overflows(elements, n, &elements);
  overflow |= mul_overflows(elements, uint64_t{type.block_bytes}, &bytes);
  if (overflow) return bad_tensor(tensor, "its bytes do not fit 64 bits");
  if (elements == 0) return bad_tensor(tensor, "it has no elements");
  if (tensor.ne[0] % type.block_elements != 0) {
    return bad_tensor(tensor, cat("its rows have ", tensor.ne[0], " elements, no multiple of the ",
                                  type.block_elements, " of a block of ", type.name));
  }
  return {};
}

Status check_tensors(std::span<const TensorSpec> tensors) {
  if (tensors.size() > kMaxTensors) {
    return Error{.code = Code::kInvalidArgument,
                 .what = "the model has too many tensors",
                 .where = {},
                 .why = cat("found ", tensors.size(), ", at most ", kMaxTensors, " are read again"),
                 .fix = "make a model with fewer layers"};
  }
  std::unordered_set<std::string_view> names;
  for (const TensorSpec& tensor : tensors) {
    TOPKNOT_CHECK_OK(check_tensor(tensor));
    if (!names.insert(tensor.name).second) return bad_tensor(tensor, "the name is there twice");
  }
  return {};
}

// The keys of part `index`; all of the model's are in the first.
MetadataEncoder part_metadata(const MetadataEncoder& metadata, const SplitLimits& split,
                              size_t index, size_t count, size_t tensors) {
  MetadataEncoder out;
  if (index == 0) out.append(metadata);
  if (!split.any()) return out;
  out.add("split.no", static_cast<uint16_t>(index));
  out.add("split.count", static_cast<uint16_t>(count));
  out.add("split.tensors.count", static_cast<int32_t>(tensors));
  return out;
}

// Cuts the list in order: a part is full when the next tensor would break a limit.
class Cutter {
 public:
  Cutter(const MetadataEncoder& metadata, std::span<const TensorSpec> tensors,
         const SplitLimits& split)
      : metadata_(metadata), tensors_(tensors), split_(split) {}

  std::vector<PlannedPart> cut() {
    begin_part(0);
    if (split_.metadata_only_first) begin_part(0);
    for (size_t i = 0; i < tensors_.size(); ++i) {
      const uint64_t entry = tensor_entry_bytes(tensors_[i].name, tensors_[i].dims);
      const uint64_t data = align_up(tensor_bytes(tensors_[i]), kAlignment);
      if (parts_.back().tensors > 0 && breaks_limit(entry, data)) begin_part(i);
      ++parts_.back().tensors;
      entries_ += entry;
      data_ += data;
    }
    finish_part();
    return std::move(parts_);
  }

 private:
  void begin_part(size_t tensor) {
    if (!parts_.empty()) finish_part();
    // The counts do not change the size: each is written in a fixed width.
    keys_ = part_metadata(metadata_, split_, parts_.size(), 1, 0).bytes().size();
    entries_ = 0;
    data_ = 0;
    parts_.push_back({.path = {}, .first_tensor = tensor});
  }

  uint64_t header_bytes(uint64_t entries) const {
    const uint64_t bytes = kHeaderPrefixBytes + keys_ + entries;
    return entries > 0 ? align_up(bytes, kAlignment) : bytes;
  }

  bool breaks_limit(uint64_t entry, uint64_t data) const {
    if (split_.max_tensors > 0 && parts_.back().tensors == split_.max_tensors) return true;
    return split_.max_bytes > 0 && header_bytes(entries_ + entry) + data_ + data > split_.max_bytes;
  }

  void finish_part() {
    parts_.back().header_bytes = header_bytes(entries_);
    parts_.back().bytes = parts_.back().header_bytes + data_;
  }

  const MetadataEncoder& metadata_;
  std::span<const TensorSpec> tensors_;
  const SplitLimits& split_;
  std::vector<PlannedPart> parts_;
  uint64_t keys_ = 0;     // of the part that is being filled: bytes of its metadata,
  uint64_t entries_ = 0;  // of its tensors' entries in the header,
  uint64_t data_ = 0;     // and of its tensors
};

std::vector<std::byte> part_header(const MetadataEncoder& metadata,
                                   std::span<const TensorSpec> tensors, const SplitLimits& split,
                                   std::span<const PlannedPart> parts, size_t index) {
  std::vector<EncodedTensor> encoded;
  uint64_t offset = 0;
  const PlannedPart& part = parts[index];
  for (const TensorSpec& tensor : tensors.subspan(part.first_tensor, part.tensors)) {
    encoded.push_back({.name = tensor.name,
                       .type_id = static_cast<uint32_t>(tensor.type),
                       .ne = std::span(tensor.ne).first(tensor.dims),
                       .offset = offset});
    offset += align_up(tensor_bytes(tensor), kAlignment);
  }
  const MetadataEncoder keys = part_metadata(metadata, split, index, parts.size(), tensors.size());
  return encode_header(kVersion, kAlignment, keys, encoded);
}

Status check_overwrite(std::span<const PlannedPart> parts) {
  for (const PlannedPart& part : parts) {
    std::error_code ignored;
    if (!std::filesystem::exists(part.path, ignored)) continue;
    return Error{.code = Code::kInvalidArgument,
                 .what = "the file is there already",
                 .where = printable(part.path, 4096),
                 .why = "nothing is overwritten unless asked for",
                 .fix = "choose another name, or add --force"};
  }
  return {};
}

Status check_directory(const std::string& path, uint64_t bytes) {
  std::filesystem::path directory = std::filesystem::path(path).parent_path();
  if (directory.empty()) directory = ".";
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) {
    return Error{.code = Code::kNotFound,
                 .what = "there is no such directory",
                 .where = printable(directory.string(), 4096),
                 .why = error ? error.message() : "it is not a directory",
                 .fix = "create it, or write to another one"};
  }
  const auto space = std::filesystem::space(directory, error);
  // Where the system cannot say, writing will find out.
  if (error || bytes <= space.available) return {};
  return Error{
      .code = Code::kResource,
      .what = "the disk is too small for the model",
      .where = printable(directory.string(), 4096),
      .why = cat("needed: ", human_bytes(bytes), "; available: ", human_bytes(space.available)),
      .fix = "free space, write to another disk, or write --headers-only"};
}

// Asks for the data of one tensor, piece by piece, and appends them with their padding.
Status write_tensor(const TensorSpec& tensor, size_t index, const TensorSource& source,
                    std::vector<std::byte>* buffer, OutputFile* file) {
  const uint64_t bytes = tensor_bytes(tensor);
  const uint64_t block = tensor::dtype_info(tensor.type).block_bytes;
  const uint64_t piece = kMaxPieceBytes / block * block;
  buffer->resize(std::min<uint64_t>(piece, bytes));
  for (uint64_t offset = 0; offset < bytes; offset += piece) {
    const auto out = std::span(*buffer).first(std::min(piece, bytes - offset));
    TOPKNOT_CHECK_OK(source(index, offset, out));
    TOPKNOT_CHECK_OK(file->write(out));
  }
  constexpr std::array<std::byte, kAlignment> kPadding{};
  return file->write(std::span(kPadding).first(align_up(bytes, kAlignment) - bytes));
}

// Gives the whole files their names; if one cannot have it, those that got theirs are no model.
Status commit_all(std::span<OutputFile> files) {
  for (size_t i = 0; i < files.size(); ++i) {
    Status done = files[i].commit();
    if (done) continue;
    std::error_code ignored;
    for (const OutputFile& named : files.first(i)) {
      std::filesystem::remove(named.path(), ignored);
    }
    return done;
  }
  return {};
}

}  // namespace

uint64_t tensor_elements(const TensorSpec& tensor) {
  return tensor.ne[0] * tensor.ne[1] * tensor.ne[2] * tensor.ne[3];
}

uint64_t tensor_bytes(const TensorSpec& tensor) {
  return tensor_elements(tensor) / tensor.ne[0] * tensor::row_bytes(tensor.type, tensor.ne[0]);
}

Result<std::vector<PlannedPart>> plan_parts(const std::string& path,
                                            const MetadataEncoder& metadata,
                                            std::span<const TensorSpec> tensors,
                                            const SplitLimits& split) {
  TOPKNOT_CHECK_OK(check_tensors(tensors));
  std::vector<PlannedPart> parts = Cutter(metadata, tensors, split).cut();
  if (parts.size() > kMaxParts) {
    return Error{.code = Code::kInvalidArgument,
                 .what = "the model would have too many parts",
                 .where = {},
                 .why = cat(parts.size(), " parts; at most ", kMaxParts, " can be counted"),
                 .fix = "allow more tensors or bytes in a part"};
  }
  std::string prefix = path;
  if (prefix.ends_with(kExtension)) prefix.resize(prefix.size() - kExtension.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].path = split.any() ? split_name(prefix, static_cast<uint32_t>(i + 1),
                                             static_cast<uint32_t>(parts.size()))
                                : prefix + std::string(kExtension);
  }
  return parts;
}

Result<std::vector<PlannedPart>> write_model(const std::string& path,
                                             const MetadataEncoder& metadata,
                                             std::span<const TensorSpec> tensors,
                                             const TensorSource& source,
                                             const StreamOptions& options) {
  TOPKNOT_TRY(std::vector<PlannedPart> parts, plan_parts(path, metadata, tensors, options.split));
  uint64_t needed = 0;
  for (const PlannedPart& part : parts) {
    needed += options.headers_only ? part.header_bytes : part.bytes;
  }
  TOPKNOT_CHECK_OK(check_directory(path, needed));
  if (!options.force) TOPKNOT_CHECK_OK(check_overwrite(parts));
  std::vector<OutputFile> files;
  files.reserve(parts.size());
  std::vector<std::byte> buffer;
  for (size_t i = 0; i < parts.size(); ++i) {
    const PlannedPart& part = parts[i];
    TOPKNOT_TRY(OutputFile created, OutputFile::create(part.path));
    OutputFile& file = files.emplace_back(std::move(created));
    TOPKNOT_CHECK_OK(file.write(part_header(metadata, tensors, options.split, parts, i)));
    if (options.headers_only) {
      TOPKNOT_CHECK_OK(file.extend(part.bytes));
    } else {
      for (size_t t = part.first_tensor; t < part.first_tensor + part.tensors; ++t) {
        TOPKNOT_CHECK_OK(write_tensor(tensors[t], t, source, &buffer, &file));
      }
    }
    TOPKNOT_CHECK_OK(file.close());  // descriptors are fewer than parts may be
  }
  TOPKNOT_CHECK_OK(commit_all(files));
  return parts;
}

}  // namespace topknot::gguf
