// Strict reading of the small JSON files that people write (machines, catalogues). Nothing is
// guessed: every problem of a file is collected, with its key, what was needed and what was found;
// keys that nobody asked for are refused, with the nearest known one.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topknot/error.h"

namespace topknot {

inline constexpr uint64_t kMaxJsonFileBytes = 1 << 20;
inline constexpr int kMaxJsonDepth = 16;
inline constexpr size_t kMaxJsonItems = 256;       // of one list or object
inline constexpr size_t kMaxJsonTextBytes = 1000;  // of one string
inline constexpr size_t kMaxJsonProblems = 32;     // reported; the rest is counted

// The order of keys stays that of the file: what is written again looks like what was read.
using Json = nlohmann::ordered_json;

class JsonProblems {
 public:
  void add(std::string_view key, std::string_view needed, std::string_view found);
  bool empty() const { return count_ == 0; }
  // kCorrupt; `what` failed, with one line "key: needs ..., found ..." for each problem.
  Error to_error(std::string what, std::string where) const;

 private:
  size_t count_ = 0;
  std::string lines_;
};

// kCorrupt for text that is no JSON (with line and column), for one that is nested deeper than
// kMaxJsonDepth, and for a key that stands twice in one object. `where` names the file.
Result<Json> parse_json(const std::string& text, std::string_view where);

// read_text_file and parse_json.
Result<Json> read_json_file(const std::string& path);

enum class Need : uint8_t { kOptional, kRequired };

// One object of a file; `value` and `problems` outlive it. A getter that finds nothing good
// reports why and returns an empty answer.
class JsonObject {
 public:
  // `path` is that of `value`: "" for the file itself, then "devices[0].links".
  JsonObject(const Json& value, std::string path, JsonProblems* problems);

  std::optional<std::string> text(const char* key, Need need = Need::kOptional);
  // A whole number of `low` to `high`. 1.5e12 is a whole number; 1.5 is not.
  std::optional<uint64_t> number(const char* key, uint64_t low, uint64_t high,
                                 Need need = Need::kOptional);
  std::optional<bool> boolean(const char* key, Need need = Need::kOptional);
  std::optional<JsonObject> object(const char* key, Need need = Need::kOptional);
  std::vector<JsonObject> objects(const char* key, Need need = Need::kOptional);
  std::vector<std::string> texts(const char* key, Need need = Need::kOptional);
  const Json* any(const char* key, Need need = Need::kOptional);

  // All keys are of the file's choosing: names to texts.
  std::vector<std::pair<std::string, std::string>> text_pairs();

  // Reports every key that no getter asked for.
  void finish();

  std::string path_of(std::string_view key) const;
  JsonProblems& problems() const { return *problems_; }

 private:
  std::optional<std::string> checked_text(const Json& value, const std::string& path) const;

  const Json* value_;
  std::string path_;
  JsonProblems* problems_;
  std::vector<std::string> known_;
};

// How a value is shown in a problem: its text, shortened, or "a list", "an object".
std::string shown(const Json& value);

}  // namespace topknot
