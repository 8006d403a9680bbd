// Parsing `--override-kv KEY=TYPE:VALUE`.
#include <charconv>
#include <cmath>

#include "base/strings.h"
#include "gguf/model_file.h"

namespace topknot::gguf {
namespace {

Error bad_override(std::string_view text, std::string why) {
  return Error{.code = Code::kInvalidArgument,
               .what = "cannot read a metadata override",
               .where = printable(text),
               .why = std::move(why),
               .fix =
                   "write KEY=TYPE:VALUE with TYPE int, float, bool or str, for instance "
                   "--override-kv glm-dsa.expert_used_count=int:4"};
}

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool describes_the_file(std::string_view key) {
  return key == "general.alignment" || key.starts_with("split.");
}

}  // namespace

Result<Override> Override::parse(std::string_view text) {
  const size_t equals = text.find('=');
  const size_t colon = equals == std::string_view::npos ? equals : text.find(':', equals);
  if (colon == std::string_view::npos) return bad_override(text, "'=' or ':' is missing");
  const std::string_view key = text.substr(0, equals);
  const std::string_view type = text.substr(equals + 1, colon - equals - 1);
  const std::string_view value = text.substr(colon + 1);
  if (key.empty()) return bad_override(text, "the key is empty");
  if (key.size() > kMaxKeyBytes || value.size() > kMaxStringBytes) {
    return bad_override(
        text, cat("a key has at most ", kMaxKeyBytes, " bytes, a value ", kMaxStringBytes));
  }
  if (describes_the_file(key)) {
    return bad_override(text, cat("'", printable(key), "' says how the file is laid out"));
  }
  Override out{.key = std::string(key), .value = false};
  if (type == "int") {
    const auto number = parse_number<int64_t>(value);
    if (!number) return bad_override(text, cat("'", printable(value), "' is no 64-bit integer"));
    out.value = *number;
  } else if (type == "float") {
    const auto number = parse_number<double>(value);
    if (!number || !std::isfinite(*number)) {
      return bad_override(text, cat("'", printable(value), "' is no finite number"));
    }
    out.value = *number;
  } else if (type == "bool") {
    if (value != "true" && value != "false") {
      return bad_override(text, cat("'", printable(value), "' is neither true nor false"));
    }
    out.value = value == "true";
  } else if (type == "str") {
    out.value = std::string(value);
  } else {
    return bad_override(text, cat("'", printable(type), "' is no type"));
  }
  return out;
}

}  // namespace topknot::gguf
