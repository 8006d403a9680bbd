#include "base/json_reader.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/mapped_file.h"
#include "base/strings.h"
#include "base/try.h"

namespace topknot {
namespace {

constexpr size_t kShownBytes = 60;
constexpr double kLargestExact = 9007199254740992.0;  // 2^53: whole numbers of a double end here

std::string place_of(const std::string& text, size_t byte) {
  const size_t end = std::min(byte == 0 ? 0 : byte - 1, text.size());
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(end), '\n');
  const size_t newline = end == 0 ? std::string::npos : text.rfind('\n', end - 1);
  const size_t column = newline == std::string::npos ? end + 1 : end - newline;
  return cat("line ", line, ", column ", column);
}

// Watches the parser: what is nested too deeply is thrown away at once, so that a hostile file
// builds nothing; keys are looked at while both of a pair still exist.
class ParseWatch {
 public:
  explicit ParseWatch(JsonProblems* problems) : problems_(problems) {}

  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    using Event = Json::parse_event_t;
    if (depth > kMaxJsonDepth) {
      if (!too_deep_) {
        problems_->add("the file", cat("at most ", kMaxJsonDepth, " levels"), "more");
      }
      too_deep_ = true;
      return false;
    }
    if (event == Event::object_start) keys_.emplace_back();
    if (event == Event::object_end && !keys_.empty()) keys_.pop_back();
    if (event == Event::key && !keys_.empty()) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_.back().insert(key).second) problems_->add(key, "to stand once", "twice");
    }
    return true;
  }

 private:
  JsonProblems* problems_;
  std::vector<std::set<std::string>> keys_;
  bool too_deep_ = false;
};

std::optional<uint64_t> whole_number(const Json& value) {
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (number >= 0 && number <= kLargestExact && number == std::floor(number)) {
      return static_cast<uint64_t>(number);
    }
  }
  return std::nullopt;
}

}  // namespace

void JsonProblems::add(std::string_view key, std::string_view needed, std::string_view found) {
  ++count_;
  if (count_ > kMaxJsonProblems) return;
  lines_ += cat(lines_.empty() ? "" : "\n", printable(key), ": needs ", needed, ", found ", found);
}

Error JsonProblems::to_error(std::string what, std::string where) const {
  std::string why = lines_;
  if (count_ > kMaxJsonProblems) why += cat("\nand ", count_ - kMaxJsonProblems, " more");
  return Error{.code = Code::kCorrupt,
               .what = std::move(what),
               .where = std::move(where),
               .why = std::move(why),
               .fix = "correct the file at the keys named"};
}

std::string shown(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return cat("a list of ", value.size());
  return printable(value.dump(-1, ' ', false, Json::error_handler_t::replace), kShownBytes);
}

Result<Json> parse_json(const std::string& text, std::string_view where) {
  const std::string what = "cannot read the JSON file";
  JsonProblems problems;
  ParseWatch watch(&problems);
  Json parsed;
  try {  // the parser reports by exception; it ends here
    parsed = Json::parse(text, [&watch](int depth, Json::parse_event_t event, Json& value) {
      return watch(depth, event, value);
    });
  } catch (const Json::parse_error& error) {
    return Error{.code = Code::kCorrupt,
                 .what = what,
                 .where = cat(where, ", ", place_of(text, error.byte)),
                 .why = "the text is not JSON there",
                 .fix = "look for a missing comma, quote or brace before that place"};
  } catch (const Json::exception&) {
    return Error{.code = Code::kCorrupt,
                 .what = what,
                 .where = std::string(where),
                 .why = "a number does not fit 64 bits",
                 .fix = "correct that number"};
  }
  if (!problems.empty()) return problems.to_error(what, std::string(where));
  return parsed;
}

Result<Json> read_json_file(const std::string& path) {
  TOPKNOT_TRY(const std::string text, read_text_file(path, kMaxJsonFileBytes));
  return parse_json(text, printable(path, 4096));
}

JsonObject::JsonObject(const Json& value, std::string path, JsonProblems* problems)
    : value_(&value), path_(std::move(path)), problems_(problems) {
  static const Json kEmpty = Json::object();
  if (!value.is_object()) {
    problems_->add(path_.empty() ? "the file" : path_, "an object", shown(value));
    value_ = &kEmpty;
  } else if (value.size() > kMaxJsonItems) {
    problems_->add(path_.empty() ? "the file" : path_, cat("at most ", kMaxJsonItems, " keys"),
                   cat(value.size()));
    value_ = &kEmpty;
  }
}

std::string JsonObject::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : cat(path_, ".", key);
}

const Json* JsonObject::any(const char* key, Need need) {
  known_.emplace_back(key);
  const auto found = value_->find(key);
  if (found != value_->end()) return &*found;
  if (need == Need::kRequired) problems_->add(path_of(key), "a value", "nothing");
  return nullptr;
}

std::optional<std::string> JsonObject::checked_text(const Json& value,
                                                    const std::string& path) const {
  if (!value.is_string()) {
    problems_->add(path, "a text", shown(value));
    return std::nullopt;
  }
  const auto& text = value.get_ref<const std::string&>();
  if (text.empty() || text.size() > kMaxJsonTextBytes) {
    problems_->add(path, cat("a text of 1 to ", kMaxJsonTextBytes, " bytes"),
                   cat(text.size(), " bytes"));
    return std::nullopt;
  }
  return text;
}

std::optional<std::string> JsonObject::text(const char* key, Need need) {
  const Json* value = any(key, need);
  return value == nullptr ? std::nullopt : checked_text(*value, path_of(key));
}

std::optional<uint64_t> JsonObject::number(const char* key, uint64_t low, uint64_t high,
                                           Need need) {
  const Json* value = any(key, need);
  if (value == nullptr) return std::nullopt;
  const auto number = whole_number(*value);
  if (number && *number >= low && *number <= high) return number;
  problems_->add(path_of(key), cat("a whole number of ", low, " to ", high), shown(*value));
  return std::nullopt;
}

std::optional<bool> JsonObject::boolean(const char* key, Need need) {
  const Json* value = any(key, need);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  problems_->add(path_of(key), "true or false", shown(*value));
  return std::nullopt;
}

std::optional<JsonObject> JsonObject::object(const char* key, Need need) {
  const Json* value = any(key, need);
  if (value == nullptr) return std::nullopt;
  return JsonObject(*value, path_of(key), problems_);
}

namespace {

// The items of a list; none, with a problem, when it is none or too long.
std::vector<const Json*> list_items(const Json& value, const std::string& path,
                                    JsonProblems* problems) {
  std::vector<const Json*> out;
  if (!value.is_array() || value.size() > kMaxJsonItems) {
    problems->add(path, cat("a list of at most ", kMaxJsonItems), shown(value));
    return out;
  }
  for (const Json& item : value) out.push_back(&item);
  return out;
}

}  // namespace

std::vector<JsonObject> JsonObject::objects(const char* key, Need need) {
  std::vector<JsonObject> out;
  const Json* value = any(key, need);
  if (value == nullptr) return out;
  for (const Json* item : list_items(*value, path_of(key), problems_)) {
    out.emplace_back(*item, cat(path_of(key), "[", out.size(), "]"), problems_);
  }
  return out;
}

std::vector<std::string> JsonObject::texts(const char* key, Need need) {
  std::vector<std::string> out;
  const Json* value = any(key, need);
  if (value == nullptr) return out;
  size_t index = 0;
  for (const Json* item : list_items(*value, path_of(key), problems_)) {
    auto text = checked_text(*item, cat(path_of(key), "[", index++, "]"));
    if (text) out.push_back(std::move(*text));
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> JsonObject::text_pairs() {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [key, value] : value_->items()) {
    known_.push_back(key);
    auto text = checked_text(value, path_of(key));
    if (text) out.emplace_back(key, std::move(*text));
  }
  return out;
}

void JsonObject::finish() {
  for (const auto& [key, value] : value_->items()) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    const auto near = nearest(key, known_, 1);
    problems_->add(path_of(key),
                   near.empty() ? "a known key" : cat("a known key: did you mean '", near[0], "'?"),
                   "that");
  }
}

}  // namespace topknot
