#include "model/metadata_reader.h"

#include "base/strings.h"

namespace topknot::model {

const gguf::Value* MetadataReader::find(std::string_view key) const {
  return file_.find_key(full_name(key));
}

std::optional<uint64_t> MetadataReader::integer(std::string_view key, const gguf::Value& value) {
  if (const gguf::Array* array = value.as_array()) {
    std::optional<uint64_t> all;
    for (uint64_t i = 0; i < array->count; ++i) {
      const auto element = gguf::Value::element_unsigned(*array, i);
      if (!element || (all && *all != *element)) {
        problem(cat(full_name(key), " is ", value.to_string(),
                    "; one integer for all layers is needed"));
        return std::nullopt;
      }
      all = element;
    }
    if (all) return all;
  } else if (const auto number = value.as_unsigned()) {
    return number;
  }
  problem(cat(full_name(key), " is ", value.to_string(), "; a non-negative integer is needed"));
  return std::nullopt;
}

std::optional<int64_t> MetadataReader::optional(std::string_view key, uint64_t low, uint64_t high) {
  const gguf::Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto number = integer(key, *value);
  if (!number) return std::nullopt;
  if (*number < low || *number > high) {
    problem(cat(full_name(key), " is ", *number, "; needed: ", low, " to ", high));
    return std::nullopt;
  }
  return static_cast<int64_t>(*number);
}

int64_t MetadataReader::required(std::string_view key, uint64_t low, uint64_t high) {
  if (find(key) == nullptr) {
    problem(cat(full_name(key), " is absent"));
    return static_cast<int64_t>(low);
  }
  return optional(key, low, high).value_or(static_cast<int64_t>(low));
}

int64_t MetadataReader::with_default(std::string_view key, uint64_t low, uint64_t high,
                                     int64_t fallback, std::string_view rule) {
  if (find(key) == nullptr && !rule.empty()) {
    note(cat(full_name(key), " is absent: ", fallback, " (", rule, ")"));
  }
  return optional(key, low, high).value_or(fallback);
}

std::optional<double> MetadataReader::optional_number(std::string_view key, double low,
                                                      double high) {
  const gguf::Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto number = value->as_number();
  if (!number || !(*number >= low && *number <= high)) {  // NaN is refused too
    problem(cat(full_name(key), " is ", value->to_string(), "; a number from ", low, " to ", high,
                " is needed"));
    return std::nullopt;
  }
  return number;
}

double MetadataReader::required_number(std::string_view key, double low, double high) {
  if (find(key) == nullptr) {
    problem(cat(full_name(key), " is absent"));
    return low;
  }
  return optional_number(key, low, high).value_or(low);
}

std::optional<bool> MetadataReader::optional_bool(std::string_view key) {
  const gguf::Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto flag = value->as_bool();
  if (!flag) problem(cat(full_name(key), " is ", value->to_string(), "; true or false is needed"));
  return flag;
}

std::optional<std::string> MetadataReader::optional_string(std::string_view key) {
  const gguf::Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto text = value->as_string();
  if (!text) {
    problem(cat(full_name(key), " is ", value->to_string(), "; a string is needed"));
    return std::nullopt;
  }
  return std::string(*text);
}

}  // namespace topknot::model
