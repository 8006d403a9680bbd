#include "gguf/part_parser.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_set>

#include "base/checked_math.h"
#include "base/strings.h"

static_assert(std::endian::native == std::endian::little, "integers are read as they lie");

namespace topknot::gguf {
namespace {

constexpr uint64_t kMinKeyValueBytes = 8 + 4 + 1;        // empty key, type, one byte
constexpr uint64_t kMinTensorInfoBytes = 8 + 4 + 4 + 8;  // empty name, no dims, type, offset
constexpr uint64_t kMinAlignment = 8;
constexpr uint32_t kValueTypes = 13;
constexpr uint64_t kReserve = 1 << 16;  // never more in advance, whatever a count says

constexpr std::string_view kFixDownload =
    "compare the file's size and checksum with the published ones and download it again";
constexpr std::string_view kFixConvert = "convert the model again with a current converter";
constexpr std::string_view kFixType =
    "use a file with ggml's own types, for instance Q4_K, Q6_K or Q8_0";

class PartParser {
 public:
  PartParser(std::span<const std::byte> bytes, Problems* problems, ParsedPart* out)
      : bytes_(bytes), problems_(problems), out_(out) {}

  void parse();

 private:
  bool read_prefix();
  bool check_magic();
  bool check_version(uint32_t version);
  bool check_count(uint64_t count, uint64_t limit, uint64_t min_bytes, const char* what);
  bool read_metadata(uint64_t count);
  bool read_value(uint32_t raw_type, uint32_t depth, std::optional<Value>* value);
  bool read_array(uint32_t depth, Array* array);
  bool read_array_elements(uint32_t depth, Array* array);
  bool read_tensor_infos(uint64_t count);
  bool read_tensor_info();
  bool check_shape(TensorInfo* tensor, const tensor::DTypeInfo& type);
  bool read_alignment();
  void place_tensors();
  void check_overlaps();

  bool corrupt(std::string line, std::string_view fix = kFixDownload) {
    problems_->add(Code::kCorrupt, std::move(line), fix);
    return false;
  }

  uint64_t left() const { return bytes_.size() - at_; }

  // Moves past `count` bytes; false, with the problem said, when the file ends before.
  bool take(uint64_t count, const std::byte** at);

  template <class T>
  bool read(T* value) {
    const std::byte* at = nullptr;
    if (!take(sizeof(T), &at)) return false;
    std::memcpy(value, at, sizeof(T));
    return true;
  }

  bool read_string(uint64_t max_bytes, std::string_view* text);

  std::string place() const {
    return place_name_.data() == nullptr ? std::string(place_)
                                         : cat(place_, " '", printable(place_name_), "'");
  }
  void at_place(const char* what, std::string_view name = {}) {
    place_ = what;
    place_name_ = name;
  }

  std::span<const std::byte> bytes_;
  uint64_t at_ = 0;
  const char* place_ = "the header";  // what is being read, for messages
  std::string_view place_name_;
  Problems* problems_;
  ParsedPart* out_;
  uint64_t tensor_count_ = 0;
  uint64_t key_count_ = 0;
};

bool PartParser::take(uint64_t count, const std::byte** at) {
  if (count > left()) {
    return corrupt(cat("the file is cut short or damaged: ", place(), " needs ", count,
                       " bytes at offset ", at_, ", the file has ", bytes_.size()));
  }
  *at = bytes_.data() + at_;
  at_ += count;
  return true;
}

bool PartParser::read_string(uint64_t max_bytes, std::string_view* text) {
  uint64_t length = 0;
  const std::byte* at = nullptr;
  if (!read(&length) || !take(length, &at)) return false;
  *text = {reinterpret_cast<const char*>(at), static_cast<size_t>(length)};
  // Its bytes are there, so reading can go on after saying this.
  if (length > max_bytes) {
    corrupt(cat(place(), " has a string of ", length, " bytes (", printable(*text, 40),
                "); at most ", max_bytes, " are accepted"));
  }
  return true;
}

bool PartParser::check_magic() {
  constexpr std::string_view kMagic = "GGUF";
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()), bytes_.size());
  if (text.starts_with(kMagic)) return true;
  if (text.empty()) return corrupt("the file is empty");
  if (text.starts_with("version https://git-lfs")) {
    return corrupt("it is a Git LFS pointer, not the file itself", "run `git lfs pull`");
  }
  return corrupt(
      cat("not a GGUF file: it begins with '", printable(text.substr(0, 4)), "' instead of 'GGUF'"),
      "give the path of a .gguf file");
}

bool PartParser::check_version(uint32_t version) {
  if (version == 2 || version == 3) return true;
  const uint32_t swapped = __builtin_bswap32(version);
  if (swapped >= 1 && swapped <= 3) {
    problems_->add(Code::kUnsupported, "the file is big-endian; only little-endian GGUF is read",
                   "use the little-endian file of this model");
  } else {
    problems_->add(Code::kUnsupported, cat("GGUF version ", version, "; versions 2 and 3 are read"),
                   kFixConvert);
  }
  return false;
}

bool PartParser::check_count(uint64_t count, uint64_t limit, uint64_t min_bytes, const char* what) {
  if (count > limit) {
    return corrupt(cat("claims ", count, " ", what, "; at most ", limit, " are accepted"));
  }
  if (count > left() / min_bytes) {
    return corrupt(cat("claims ", count, " ", what, ", which need at least ", count * min_bytes,
                       " bytes; the file has ", left(), " left"));
  }
  return true;
}

bool PartParser::read_prefix() {
  if (!check_magic()) return false;
  at_ = 4;
  if (!read(&out_->part.version) || !check_version(out_->part.version)) return false;
  if (!read(&tensor_count_) || !read(&key_count_)) return false;
  out_->part.tensors = tensor_count_;
  return check_count(key_count_, kMaxKeys, kMinKeyValueBytes, "metadata keys") &&
         check_count(tensor_count_, kMaxTensors, kMinTensorInfoBytes, "tensors");
}

bool PartParser::read_metadata(uint64_t count) {
  std::unordered_set<std::string_view> seen;
  for (uint64_t i = 0; i < count; ++i) {
    std::string_view key;
    uint32_t type = 0;
    std::optional<Value> value;
    at_place("a metadata key");
    if (!read_string(kMaxKeyBytes, &key)) return false;
    at_place("the value of key", key);
    if (!read(&type) || !read_value(type, 0, &value)) return false;
    if (!seen.insert(key).second) {
      corrupt(cat("key '", printable(key), "' is there twice"), kFixConvert);
      continue;
    }
    out_->metadata.push_back({key, std::move(*value)});
  }
  return true;
}

bool PartParser::read_value(uint32_t raw_type, uint32_t depth, std::optional<Value>* value) {
  if (raw_type >= kValueTypes) {
    return corrupt(cat(place(), " has value type ", raw_type, ", which does not exist"));
  }
  const auto type = static_cast<ValueType>(raw_type);
  const auto number = [&]<class T, class Wide>(T raw, Wide) {
    if (!read(&raw)) return false;
    value->emplace(type, static_cast<Wide>(raw));
    return true;
  };
  switch (type) {
    case ValueType::kU8: return number(uint8_t{}, uint64_t{});
    case ValueType::kI8: return number(int8_t{}, int64_t{});
    case ValueType::kU16: return number(uint16_t{}, uint64_t{});
    case ValueType::kI16: return number(int16_t{}, int64_t{});
    case ValueType::kU32: return number(uint32_t{}, uint64_t{});
    case ValueType::kI32: return number(int32_t{}, int64_t{});
    case ValueType::kU64: return number(uint64_t{}, uint64_t{});
    case ValueType::kI64: return number(int64_t{}, int64_t{});
    case ValueType::kF32: return number(float{}, double{});
    case ValueType::kF64: return number(double{}, double{});
    case ValueType::kBool: {
      uint8_t raw = 0;
      if (!read(&raw)) return false;
      if (raw > 1) corrupt(cat(place(), " is a bool of ", raw, "; 0 and 1 exist"));
      value->emplace(type, raw != 0);
      return true;
    }
    case ValueType::kString: {
      std::string_view text;
      if (!read_string(kMaxStringBytes, &text)) return false;
      value->emplace(type, text);
      return true;
    }
    case ValueType::kArray: {
      Array array;
      if (!read_array(depth + 1, &array)) return false;
      value->emplace(type, std::move(array));
      return true;
    }
  }
  return false;
}

bool PartParser::read_array(uint32_t depth, Array* array) {
  if (depth > kMaxArrayDepth) {
    return corrupt(cat(place(), " nests arrays more than ", kMaxArrayDepth, " deep"));
  }
  uint32_t raw_type = 0;
  if (!read(&raw_type) || !read(&array->count)) return false;
  if (raw_type >= kValueTypes) {
    return corrupt(cat(place(), " has element type ", raw_type, ", which does not exist"));
  }
  array->element_type = static_cast<ValueType>(raw_type);
  const bool nested = array->element_type == ValueType::kArray;
  const uint64_t limit = nested ? kMaxNestedArrays : kMaxArrayElements;
  if (array->count > limit) {
    return corrupt(
        cat(place(), " claims ", array->count, " elements; at most ", limit, " are accepted"));
  }
  return read_array_elements(depth, array);
}

bool PartParser::read_array_elements(uint32_t depth, Array* array) {
  if (array->element_type == ValueType::kString) {
    array->strings.reserve(std::min({array->count, left() / 8, kReserve}));
    for (uint64_t i = 0; i < array->count; ++i) {
      std::string_view text;
      if (!read_string(kMaxStringBytes, &text)) return false;
      array->strings.push_back(text);
    }
    return true;
  }
  if (array->element_type == ValueType::kArray) {
    for (uint64_t i = 0; i < array->count; ++i) {
      std::optional<Value> value;
      if (!read_value(static_cast<uint32_t>(ValueType::kArray), depth, &value)) return false;
      array->arrays.push_back(std::move(*value));
    }
    return true;
  }
  // No overflow: the count is below 2^28 and the width at most 8.
  const uint64_t bytes = array->count * value_type_bytes(array->element_type);
  const std::byte* at = nullptr;
  if (!take(bytes, &at)) return false;
  array->bytes = {at, static_cast<size_t>(bytes)};
  return true;
}

bool PartParser::read_tensor_infos(uint64_t count) {
  out_->tensors.reserve(std::min({count, left() / kMinTensorInfoBytes, kReserve}));
  for (uint64_t i = 0; i < count; ++i) {
    if (!read_tensor_info()) return false;
  }
  return true;
}

// False when reading cannot go on. A tensor whose type or shape is refused is left out of the list.
bool PartParser::read_tensor_info() {
  TensorInfo tensor;
  uint32_t type_id = 0;
  at_place("a tensor name");
  if (!read_string(kMaxTensorNameBytes, &tensor.name)) return false;
  at_place("tensor", tensor.name);
  if (!read(&tensor.dims)) return false;
  if (tensor.dims > tensor.ne.size()) {
    return corrupt(cat(place(), " has ", tensor.dims, " dimensions; at most 4 exist"));
  }
  for (uint32_t i = 0; i < tensor.dims; ++i) {
    if (!read(&tensor.ne[i])) return false;
  }
  if (!read(&type_id) || !read(&tensor.file_offset)) return false;
  tensor.dims = std::max(tensor.dims, 1U);  // a scalar is one row of one element
  if (tensor.name.empty()) corrupt("a tensor has an empty name");
  const tensor::DTypeInfo* const type = tensor::find_dtype(type_id);
  if (type == nullptr) {
    problems_->add(Code::kUnsupported,
                   cat(place(), " has ", tensor::describe_unknown_dtype(type_id)), kFixType);
    return true;
  }
  tensor.type = type->type;
  if (check_shape(&tensor, *type)) out_->tensors.push_back(tensor);
  return true;
}

bool PartParser::check_shape(TensorInfo* tensor, const tensor::DTypeInfo& type) {
  uint64_t elements = 1;
  bool overflow = false;
  for (const uint64_t n : tensor->ne) overflow |= mul_overflows(elements, n, &elements);
  const uint64_t blocks = elements / type.block_elements;
  overflow |= mul_overflows(blocks, uint64_t{type.block_bytes}, &tensor->bytes);
  const auto shape = [tensor] { return shape_string(*tensor); };
  if (std::find(tensor->ne.begin(), tensor->ne.end(), 0) != tensor->ne.end()) {
    return corrupt(cat(place(), " of shape ", shape(), " has no elements"));
  }
  if (overflow) {
    return corrupt(cat(place(), " of shape ", shape(), " has more bytes than 64 bits can count"));
  }
  if (tensor->ne[0] % type.block_elements != 0) {
    return corrupt(cat(place(), " of shape ", shape(), " has rows of ", tensor->ne[0],
                       " elements, which is no multiple of the ", type.block_elements,
                       " of a block of ", type.name),
                   kFixConvert);
  }
  return true;
}

bool PartParser::read_alignment() {
  const Value* const value = out_->find_key("general.alignment");
  if (value == nullptr) return true;
  const uint64_t alignment = value->as_unsigned().value_or(0);
  if (value->type() == ValueType::kBool || alignment < kMinAlignment || alignment > kMaxAlignment ||
      !std::has_single_bit(alignment)) {
    return corrupt(cat("general.alignment is ", value->to_string(40), "; a power of two from ",
                       kMinAlignment, " to ", kMaxAlignment, " is needed"));
  }
  out_->part.alignment = alignment;
  return true;
}

// Turns offsets into absolute ones, and says which tensors do not lie whole within the file.
void PartParser::place_tensors() {
  const uint64_t mask = out_->part.alignment - 1;
  out_->part.data_begin = (at_ + mask) & ~mask;
  uint64_t outside = 0;
  std::string first;
  std::vector<TensorInfo> inside;
  inside.reserve(out_->tensors.size());
  for (TensorInfo& tensor : out_->tensors) {
    if ((tensor.file_offset & mask) != 0) {
      corrupt(cat("tensor '", printable(tensor.name), "' begins at offset ", tensor.file_offset,
                  ", which is no multiple of the alignment ", out_->part.alignment));
    }
    uint64_t begin = 0;
    uint64_t end = 0;
    const bool overflow = add_overflows(out_->part.data_begin, tensor.file_offset, &begin) ||
                          add_overflows(begin, tensor.bytes, &end);
    if (overflow || end > bytes_.size()) {
      if (outside++ == 0) {
        first = cat("tensor '", printable(tensor.name), "' needs ", tensor.bytes, " bytes at ",
                    out_->part.data_begin, "+", tensor.file_offset);
      }
      continue;
    }
    tensor.file_offset = begin;
    tensor.data = bytes_.data() + begin;
    inside.push_back(tensor);
  }
  out_->tensors = std::move(inside);
  if (outside == 0) return;
  if (outside > 1) first += cat(" (the first of ", outside, " tensors outside the file)");
  corrupt(cat("the file is cut short or damaged: ", first, "; the file has ", bytes_.size()));
}

void PartParser::check_overlaps() {
  std::vector<const TensorInfo*> order;
  order.reserve(out_->tensors.size());
  for (const TensorInfo& tensor : out_->tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const TensorInfo* a, const TensorInfo* b) {
    return a->file_offset < b->file_offset;
  });
  const TensorInfo* reaching = nullptr;  // of those before, the one that ends last
  for (const TensorInfo* tensor : order) {
    if (reaching != nullptr && tensor->file_offset < reaching->file_offset + reaching->bytes) {
      corrupt(cat("tensors '", printable(reaching->name), "' and '", printable(tensor->name),
                  "' overlap at offset ", tensor->file_offset));
    }
    if (reaching == nullptr ||
        tensor->file_offset + tensor->bytes > reaching->file_offset + reaching->bytes) {
      reaching = tensor;
    }
  }
}

void PartParser::parse() {
  if (!read_prefix() || !read_metadata(key_count_) || !read_tensor_infos(tensor_count_)) return;
  out_->complete = true;
  if (!read_alignment()) return;  // without it no tensor can be found
  place_tensors();
  check_overlaps();
}

}  // namespace

const Value* ParsedPart::find_key(std::string_view key) const {
  for (const KeyValue& entry : metadata) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

ParsedPart parse_part(std::span<const std::byte> bytes, const std::string& path,
                      Problems* problems) {
  ParsedPart out;
  out.part.path = path;
  out.part.bytes = bytes.size();
  PartParser(bytes, problems, &out).parse();
  return out;
}

}  // namespace topknot::gguf
