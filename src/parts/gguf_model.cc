// include/topknot/gguf.h over gguf/ and tensor/.
#include "topknot/gguf.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "base/try.h"
#include "gguf/model_file.h"
#include "tensor/dequantize.h"

namespace topknot {
namespace {

constexpr size_t kMaxNamedBytes = 200;  // of a name in a message

GgufTensor describe(const gguf::TensorInfo& info) {
  GgufTensor out;
  out.name = info.name;
  out.type = tensor::dtype_name(info.type);
  out.shape.assign(info.ne.begin(), info.ne.begin() + info.dims);
  std::reverse(out.shape.begin(), out.shape.end());
  out.row_elements = info.ne[0];
  out.rows = info.ne[1] * info.ne[2] * info.ne[3];
  out.row_bytes = tensor::row_bytes(info.type, info.ne[0]);
  out.bytes = info.bytes;
  out.part = info.part;
  out.file_offset = info.file_offset;
  out.decoded = tensor::dtype_info(info.type).decoded;
  out.data = info.data;
  return out;
}

std::string nearest_of(std::string_view name, const std::vector<std::string>& names) {
  const auto near = nearest(name, names, 1);
  return near.empty() ? std::string() : cat("did you mean '", printable(near.front()), "'?");
}

}  // namespace

struct GgufModel::State {
  explicit State(gguf::ModelFile opened) : file(std::move(opened)) {
    for (const gguf::Part& each : file.parts()) {
      parts.push_back({each.path, each.bytes, each.tensors});
    }
    for (const gguf::KeyValue& each : file.metadata()) {
      keys.push_back({each.key, gguf::value_type_name(each.value.type()), each.value.to_string()});
    }
    for (const gguf::TensorInfo& each : file.tensors()) tensors.push_back(describe(each));
  }

  Error no_key(std::string_view key) const {
    std::vector<std::string> names;
    for (const GgufKey& each : keys) names.emplace_back(each.name);
    return Error{.code = Code::kNotFound,
                 .what = cat("the model has no key '", printable(key, kMaxNamedBytes), "'"),
                 .where = file.path(),
                 .why = cat("its ", keys.size(), " keys were searched for this exact name"),
                 .fix = nearest_of(key, names)};
  }

  Error no_tensor(std::string_view name) const {
    std::vector<std::string> names;
    for (const GgufTensor& each : tensors) names.emplace_back(each.name);
    return Error{.code = Code::kNotFound,
                 .what = cat("the model has no tensor '", printable(name, kMaxNamedBytes), "'"),
                 .where = file.path(),
                 .why = cat("its ", tensors.size(), " tensors were searched for this exact name"),
                 .fix = nearest_of(name, names)};
  }

  Error wrong_type(std::string_view key, const gguf::Value& value, std::string_view wanted) const {
    const gguf::Array* const array = value.as_array();
    const std::string found = array != nullptr
                                  ? cat("array of ", gguf::value_type_name(array->element_type))
                                  : std::string(gguf::value_type_name(value.type()));
    return Error{.code = Code::kInvalidArgument,
                 .what = cat("the key '", printable(key, kMaxNamedBytes), "' is not ", wanted),
                 .where = file.path(),
                 .why = cat("its type is ", found, ", its value ", value.to_string()),
                 .fix = "read it as the type that keys() names"};
  }

  Error too_large(std::string_view key, uint64_t found) const {
    return Error{
        .code = Code::kOutOfRange,
        .what = cat("the key '", printable(key, kMaxNamedBytes), "' is out of range"),
        .where = file.path(),
        .why = cat("it holds ", found, "; a signed integer of 64 bits ends at ", INT64_MAX),
        .fix = "read it as a number, which is rounded"};
  }

  Result<const gguf::Value*> find(std::string_view key) const {
    const gguf::Value* const value = file.find_key(key);
    if (value == nullptr) return no_key(key);
    return value;
  }

  // One value, by one of Value's readers.
  template <class T>
  Result<T> read(std::string_view key, std::optional<T> (gguf::Value::*reader)() const,
                 std::string_view wanted) const {
    TOPKNOT_TRY(const gguf::Value* const value, find(key));
    const std::optional<T> found = (value->*reader)();
    if (!found) return wrong_type(key, *value, wanted);
    return *found;
  }

  // An array, by a reader of one element.
  template <class T, class Reader>
  Result<std::vector<T>> read_array(std::string_view key, Reader element,
                                    std::string_view wanted) const {
    TOPKNOT_TRY(const gguf::Value* const value, find(key));
    const gguf::Array* const array = value->as_array();
    if (array == nullptr) return wrong_type(key, *value, wanted);
    std::vector<T> out;
    out.reserve(array->count);
    for (uint64_t i = 0; i < array->count; ++i) {
      const std::optional<T> each = element(*array, i);
      if (!each) return wrong_type(key, *value, wanted);
      out.push_back(*each);
    }
    return out;
  }

  gguf::ModelFile file;
  std::vector<GgufPart> parts;
  std::vector<GgufKey> keys;
  std::vector<GgufTensor> tensors;  // in the order of file.tensors()
};

GgufModel::GgufModel(std::unique_ptr<State> state) : state_(std::move(state)) {}
GgufModel::GgufModel(GgufModel&&) noexcept = default;
GgufModel& GgufModel::operator=(GgufModel&&) noexcept = default;
GgufModel::~GgufModel() = default;

Result<GgufModel> GgufModel::open(const std::string& path,
                                  const std::vector<std::string>& override_kv) {
  std::vector<gguf::Override> overrides;
  for (const std::string& text : override_kv) {
    TOPKNOT_TRY(gguf::Override parsed, gguf::Override::parse(text));
    overrides.push_back(std::move(parsed));
  }
  TOPKNOT_TRY(gguf::ModelFile file, gguf::ModelFile::open(path, overrides));
  return GgufModel(std::make_unique<State>(std::move(file)));
}

const std::vector<GgufPart>& GgufModel::parts() const { return state_->parts; }
const std::vector<GgufKey>& GgufModel::keys() const { return state_->keys; }
const std::vector<GgufTensor>& GgufModel::tensors() const { return state_->tensors; }

bool GgufModel::has_key(std::string_view key) const {
  return state_->file.find_key(key) != nullptr;
}

Result<int64_t> GgufModel::integer(std::string_view key) const {
  TOPKNOT_TRY(const gguf::Value* const value, state_->find(key));
  if (const auto found = value->as_signed()) return *found;
  if (const auto large = value->as_unsigned()) return state_->too_large(key, *large);
  return state_->wrong_type(key, *value, "an integer");
}

Result<double> GgufModel::number(std::string_view key) const {
  return state_->read(key, &gguf::Value::as_number, "a number");
}

Result<bool> GgufModel::boolean(std::string_view key) const {
  return state_->read(key, &gguf::Value::as_bool, "true or false");
}

Result<std::string_view> GgufModel::text(std::string_view key) const {
  return state_->read(key, &gguf::Value::as_string, "text");
}

Result<std::vector<int64_t>> GgufModel::integers(std::string_view key) const {
  std::optional<uint64_t> large;
  const auto element = [&](const gguf::Array& array, uint64_t i) {
    const auto found = gguf::Value::element_signed(array, i);
    if (!found) large = gguf::Value::element_unsigned(array, i);
    return found;
  };
  auto out = state_->read_array<int64_t>(key, element, "an array of integers");
  if (large) return state_->too_large(key, *large);
  return out;
}

Result<std::vector<double>> GgufModel::numbers(std::string_view key) const {
  return state_->read_array<double>(key, &gguf::Value::element_number, "an array of numbers");
}

Result<std::vector<std::string_view>> GgufModel::texts(std::string_view key) const {
  const auto element = [](const gguf::Array& array, uint64_t i) -> std::optional<std::string_view> {
    if (array.element_type != gguf::ValueType::kString) return std::nullopt;
    return array.strings[i];
  };
  return state_->read_array<std::string_view>(key, element, "an array of texts");
}

Result<const GgufTensor*> GgufModel::tensor(std::string_view name) const {
  const gguf::TensorInfo* const info = state_->file.find_tensor(name);
  if (info == nullptr) return state_->no_tensor(name);
  return &state_->tensors[static_cast<size_t>(info - state_->file.tensors().data())];
}

Status GgufModel::decode_rows(std::string_view name, uint64_t first_row,
                              std::span<float> out) const {
  TOPKNOT_TRY(const GgufTensor* found, tensor(name));
  const std::string where =
      cat(state_->parts[found->part].path, ", tensor '", printable(name, kMaxNamedBytes), "'");
  const tensor::DType type = state_->file.find_tensor(name)->type;
  if (!found->decoded) {
    return Error{.code = Code::kUnsupported,
                 .what = cat("rows of type ", found->type, " cannot be decoded"),
                 .where = where,
                 .why = "this version knows the size of that type's blocks and not their meaning",
                 .fix = "use a model whose GgufTensor::decoded is true, for instance Q8_0 or BF16"};
  }
  if (out.size() % found->row_elements != 0) {
    return Error{.code = Code::kInvalidArgument,
                 .what = cat("room for ", out.size(), " elements is not a number of whole rows"),
                 .where = where,
                 .why = cat("a row has ", found->row_elements, " elements"),
                 .fix = "give room for a multiple of GgufTensor::row_elements"};
  }
  const uint64_t count = out.size() / found->row_elements;
  if (first_row > found->rows || count > found->rows - first_row) {
    return Error{.code = Code::kOutOfRange,
                 .what = cat(count, " rows from row ", first_row, " on are not there"),
                 .where = where,
                 .why = cat("the tensor has ", found->rows, " rows"),
                 .fix = "ask for rows before GgufTensor::rows"};
  }
  for (uint64_t i = 0; i < count; ++i) {
    tensor::dequantize_row(type, found->data + (first_row + i) * found->row_bytes,
                           found->row_elements, out.data() + i * found->row_elements);
  }
  return {};
}

}  // namespace topknot
