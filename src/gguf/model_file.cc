#include "gguf/model_file.h"

#include <filesystem>
#include <map>

#include "base/strings.h"
#include "base/try.h"
#include "gguf/part_parser.h"
#include "gguf/problems.h"
#include "gguf/split_name.h"

namespace topknot::gguf {
namespace {

constexpr std::string_view kFixParts =
    "download all parts of one model into one directory and keep their names";

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

std::optional<uint64_t> find_unsigned(const ParsedPart& part, std::string_view key) {
  const Value* const value = part.find_key(key);
  return value == nullptr ? std::nullopt : value->as_unsigned();
}

}  // namespace

// Builds a ModelFile. Goes on after a problem as far as it can, so that the user hears of all of
// them.
class Reader {
 public:
  Result<ModelFile> open(const std::string& path, std::span<const Override> overrides);
  Result<ModelFile> read_memory(std::span<const std::byte> bytes, const std::string& name,
                                std::span<const Override> overrides);

 private:
  struct Slot {
    uint32_t number = 1;  // of the part, from its name; counts from 1
    ParsedPart parsed;
  };

  Status open_split(const SplitName& name, const std::string& path);
  Status open_one(const std::string& path);
  void add_file(const MappedFile& file, const std::string& path, uint32_t number);
  void add_part(std::span<const std::byte> bytes, const std::string& path, uint32_t number);
  void check_whole(const ParsedPart& part);
  void check_split();
  void check_split_keys(const Slot& slot, std::map<uint64_t, std::string>* claimed);
  void check_tensor_total();
  void merge_tensors();
  void add_duplicate(const TensorInfo& first, const TensorInfo& second);
  void apply(const Override& override_value);
  Result<ModelFile> finish(const std::string& path, std::span<const Override> overrides);

  ModelFile model_;
  Problems problems_;
  std::vector<Slot> slots_;
  uint32_t count_ = 1;  // parts there must be
};

Result<ModelFile> Reader::open(const std::string& path, std::span<const Override> overrides) {
  std::error_code ignored;
  std::string file = path;
  if (std::filesystem::is_directory(path, ignored)) {
    TOPKNOT_TRY(file, find_model(path));
  }
  const auto split = parse_split_name(file);
  TOPKNOT_CHECK_OK(split ? open_split(*split, file) : open_one(file));
  return finish(file, overrides);
}

Result<ModelFile> Reader::read_memory(std::span<const std::byte> bytes, const std::string& name,
                                      std::span<const Override> overrides) {
  add_part(bytes, name, 1);
  check_whole(slots_.front().parsed);
  return finish(name, overrides);
}

Status Reader::open_one(const std::string& path) {
  TOPKNOT_TRY(MappedFile file, MappedFile::open(path));
  add_file(file, path, 1);
  model_.files_.push_back(std::move(file));
  check_whole(slots_.front().parsed);
  return {};
}

Status Reader::open_split(const SplitName& name, const std::string& path) {
  if (name.count == 0 || name.count > kMaxParts || name.number == 0 || name.number > name.count) {
    return Error{.code = Code::kInvalidArgument,
                 .what = "the file name names no part of a split model",
                 .where = printable(path, 4096),
                 .why = cat("it says part ", name.number, " of ", name.count,
                            "; parts count from 1, and ", kMaxParts, " are the most"),
                 .fix = std::string(kFixParts)};
  }
  count_ = name.count;
  // If even the named file is not there, the user's path is wrong, not the download.
  if (auto named = MappedFile::open(path); !named) return std::move(named).error();
  for (uint32_t number = 1; number <= count_; ++number) {
    const std::string part_path = split_name(name.prefix, number, count_);
    auto file = MappedFile::open(part_path);
    if (file) {
      problems_.set_file(count_ == 1 ? "" : file_name(part_path));
      add_file(*file, part_path, number);
      model_.files_.push_back(std::move(file).value());
      continue;
    }
    problems_.set_file("");
    const bool missing = file.error().code == Code::kNotFound;
    problems_.add(file.error().code,
                  cat("part ", number, " of ", count_,
                      missing ? " is missing: " : " cannot be read: ", printable(part_path, 4096),
                      missing ? "" : cat(": ", file.error().why)),
                  kFixParts);
  }
  check_split();
  return {};
}

// Of a model of hundreds of gigabytes only the headers are read here. The first part has the
// tokenizer, some megabytes; the others have little more than names.
void Reader::add_file(const MappedFile& file, const std::string& path, uint32_t number) {
  constexpr size_t kFirstHeaderBytes = 8 << 20;
  constexpr size_t kOtherHeaderBytes = 256 << 10;
  file.read_only_the_first(number == 1 ? kFirstHeaderBytes : kOtherHeaderBytes);
  add_part(file.bytes(), path, number);
  file.read_ahead();
}

void Reader::add_part(std::span<const std::byte> bytes, const std::string& path, uint32_t number) {
  slots_.push_back({number, parse_part(bytes, path, &problems_)});
}

// A file whose name is not that of a part must not say that it is one.
void Reader::check_whole(const ParsedPart& part) {
  const uint64_t count = find_unsigned(part, "split.count").value_or(0);
  if (count <= 1) return;
  problems_.add(
      Code::kCorrupt,
      cat("it is part ", find_unsigned(part, "split.no").value_or(0) + 1, " of ", count,
          ", but its name does not end like that of a part, so the others cannot be found"),
      cat("rename the parts to <name>-00001-of-", fmt::format("{:05}", count), ".gguf and on"));
}

void Reader::check_split() {
  std::map<uint64_t, std::string> claimed;  // split.no -> file
  for (const Slot& slot : slots_) {
    problems_.set_file(count_ == 1 ? "" : file_name(slot.parsed.part.path));
    if (slot.parsed.complete) check_split_keys(slot, &claimed);
  }
  problems_.set_file("");
  check_tensor_total();
}

void Reader::check_split_keys(const Slot& slot, std::map<uint64_t, std::string>* claimed) {
  const auto no = find_unsigned(slot.parsed, "split.no");
  const auto count = find_unsigned(slot.parsed, "split.count");
  const auto corrupt = [this](std::string line) {
    problems_.add(Code::kCorrupt, std::move(line), kFixParts);
  };
  if (!no || !count) {
    // One file may be named as the only part without having been split.
    if (count_ > 1)
      corrupt(cat("its name says part ", slot.number, " of ", count_, ", but the key ",
                  no ? "split.count" : "split.no", " is absent"));
    return;
  }
  if (*count != count_ && !(count_ == 1 && *count == 0)) {
    corrupt(cat("its name says ", count_, " parts, split.count says ", *count));
  }
  if (*no + 1 != slot.number) {
    corrupt(cat("its name says part ", slot.number, ", split.no says part ", *no + 1));
  }
  const auto [known, added] = claimed->emplace(*no, file_name(slot.parsed.part.path));
  if (!added) {
    corrupt(cat("it is part ", *no + 1, " again: ", printable(known->second, 255),
                " has the same split.no"));
  }
}

// Only when every part is there and readable: otherwise the sum says nothing new.
void Reader::check_tensor_total() {
  if (slots_.size() != count_) return;
  uint64_t total = 0;
  for (const Slot& slot : slots_) {
    if (!slot.parsed.complete) return;
    total += slot.parsed.part.tensors;
  }
  for (const Slot& slot : slots_) {
    const auto claimed = find_unsigned(slot.parsed, "split.tensors.count");
    if (!claimed || *claimed == total) continue;
    problems_.add(Code::kCorrupt,
                  cat(printable(file_name(slot.parsed.part.path), 255), ": split.tensors.count is ",
                      *claimed, ", but the parts hold ", total, " tensors"),
                  kFixParts);
  }
}

void Reader::merge_tensors() {
  for (Slot& slot : slots_) {
    const auto part = static_cast<uint32_t>(model_.parts_.size());
    model_.parts_.push_back(std::move(slot.parsed.part));
    for (TensorInfo& tensor : slot.parsed.tensors) {
      tensor.part = part;
      const auto [known, added] = model_.tensor_index_.emplace(tensor.name, model_.tensors_.size());
      if (added) {
        model_.tensors_.push_back(tensor);
      } else {
        add_duplicate(model_.tensors_[known->second], tensor);
      }
    }
  }
  if (model_.tensors_.size() > kMaxTensors) {
    problems_.add(Code::kCorrupt,
                  cat("the parts hold ", model_.tensors_.size(), " tensors; at most ", kMaxTensors,
                      " are accepted"),
                  kFixParts);
  }
}

void Reader::add_duplicate(const TensorInfo& first, const TensorInfo& second) {
  const auto file = [this](const TensorInfo& tensor) {
    return printable(file_name(model_.parts_[tensor.part].path), 255);
  };
  std::string line = cat("tensor '", printable(first.name), "' is there twice");
  if (first.part != second.part) line += cat(", in ", file(first), " and ", file(second));
  problems_.add(Code::kCorrupt, std::move(line), kFixParts);
}

void Reader::apply(const Override& entry) {
  const auto own = [this](const std::string& text) -> std::string_view {
    return *model_.owned_.emplace_back(std::make_unique<std::string>(text));
  };
  const auto as_value = [&]<class T>(const T& value) {
    if constexpr (std::is_same_v<T, int64_t>) return Value(ValueType::kI64, value);
    if constexpr (std::is_same_v<T, double>) return Value(ValueType::kF64, value);
    if constexpr (std::is_same_v<T, bool>) return Value(ValueType::kBool, value);
    if constexpr (std::is_same_v<T, std::string>) return Value(ValueType::kString, own(value));
  };
  Value value = std::visit(as_value, entry.value);
  if (const auto known = model_.key_index_.find(entry.key); known != model_.key_index_.end()) {
    model_.metadata_[known->second].value = std::move(value);
    return;
  }
  const std::string_view key = own(entry.key);
  model_.key_index_.emplace(key, model_.metadata_.size());
  model_.metadata_.push_back({key, std::move(value)});
}

Result<ModelFile> Reader::finish(const std::string& path, std::span<const Override> overrides) {
  problems_.set_file("");
  merge_tensors();
  if (!problems_.empty()) return problems_.to_error(path);
  model_.metadata_ = std::move(slots_.front().parsed.metadata);
  for (size_t i = 0; i < model_.metadata_.size(); ++i) {
    model_.key_index_.emplace(model_.metadata_[i].key, i);
  }
  for (const Override& entry : overrides) apply(entry);
  return std::move(model_);
}

Result<ModelFile> ModelFile::open(const std::string& path, std::span<const Override> overrides) {
  return Reader().open(path, overrides);
}

Result<ModelFile> ModelFile::from_memory(std::span<const std::byte> bytes, std::string name,
                                         std::span<const Override> overrides) {
  return Reader().read_memory(bytes, name, overrides);
}

const Value* ModelFile::find_key(std::string_view key) const {
  const auto found = key_index_.find(key);
  return found == key_index_.end() ? nullptr : &metadata_[found->second].value;
}

const TensorInfo* ModelFile::find_tensor(std::string_view name) const {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

uint64_t ModelFile::total_bytes() const {
  uint64_t total = 0;
  for (const Part& part : parts_) total += part.bytes;
  return total;
}

}  // namespace topknot::gguf
