// Reads the keys of one architecture and collects every problem, so that a file is explained at
// once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/model_file.h"

namespace topknot::model {

class MetadataReader {
 public:
  MetadataReader(const gguf::ModelFile& file, std::string architecture)
      : file_(file), prefix_(std::move(architecture) + ".") {}

  // An integer in [low, high]; a key that holds an array must hold one value throughout.
  int64_t required(std::string_view key, uint64_t low, uint64_t high);
  std::optional<int64_t> optional(std::string_view key, uint64_t low, uint64_t high);
  // Absent: the default, with a note when `rule` is not empty.
  int64_t with_default(std::string_view key, uint64_t low, uint64_t high, int64_t fallback,
                       std::string_view rule = {});
  double required_number(std::string_view key, double low, double high);
  std::optional<double> optional_number(std::string_view key, double low, double high);
  std::optional<bool> optional_bool(std::string_view key);
  std::optional<std::string> optional_string(std::string_view key);
  const gguf::Value* find(std::string_view key) const;

  std::string full_name(std::string_view key) const { return prefix_ + std::string(key); }
  void problem(std::string text) { problems_.push_back(std::move(text)); }
  void note(std::string text) { notes_.push_back(std::move(text)); }
  const std::vector<std::string>& problems() const { return problems_; }
  std::vector<std::string> take_notes() { return std::move(notes_); }
  const gguf::ModelFile& file() const { return file_; }

 private:
  std::optional<uint64_t> integer(std::string_view key, const gguf::Value& value);

  const gguf::ModelFile& file_;
  std::string prefix_;
  std::vector<std::string> problems_;
  std::vector<std::string> notes_;
};

}  // namespace topknot::model
