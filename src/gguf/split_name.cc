#include "gguf/split_name.h"

#include <filesystem>
#include <map>

#include "base/strings.h"
#include "gguf/model_file.h"

namespace topknot::gguf {
namespace {

constexpr std::string_view kExtension = ".gguf";
constexpr std::string_view kSidecar = "mtp-";

std::optional<uint32_t> five_digits(std::string_view text) {
  uint32_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<uint32_t>(c - '0');
  }
  return value;
}

Error no_model(const std::string& directory, std::string why) {
  return Error{.code = Code::kNotFound,
               .what = "no model in the directory",
               .where = printable(directory, 4096),
               .why = std::move(why),
               .fix = "give the directory that holds the .gguf files, or one of them"};
}

Error several_models(const std::string& directory,
                     const std::map<std::string, std::string>& models) {
  std::string why = cat("it holds ", models.size(), " models:");
  size_t listed = 0;
  for (const auto& [key, path] : models) {
    if (listed++ == kMaxReportedProblems) {
      why += cat("\nand ", models.size() - kMaxReportedProblems, " more");
      break;
    }
    why += cat("\n", printable(std::filesystem::path(path).filename().string(), 255));
  }
  return Error{.code = Code::kInvalidArgument,
               .what = "several models in the directory",
               .where = printable(directory, 4096),
               .why = std::move(why),
               .fix = "give the path of one of them"};
}

}  // namespace

std::optional<SplitName> parse_split_name(std::string_view path) {
  constexpr std::string_view kOf = "-of-";
  constexpr size_t kTail = 1 + 5 + 4 + 5;  // -00001-of-00002
  if (!path.ends_with(kExtension)) return std::nullopt;
  path.remove_suffix(kExtension.size());
  if (path.size() < kTail) return std::nullopt;
  const std::string_view tail = path.substr(path.size() - kTail);
  const auto number = five_digits(tail.substr(1, 5));
  const auto count = five_digits(tail.substr(10, 5));
  if (tail[0] != '-' || tail.substr(6, 4) != kOf || !number || !count) return std::nullopt;
  return SplitName{std::string(path.substr(0, path.size() - kTail)), *number, *count};
}

std::string split_name(std::string_view prefix, uint32_t number, uint32_t count) {
  return cat(prefix, fmt::format("-{:05}-of-{:05}", number, count), kExtension);
}

Result<std::string> find_model(const std::string& directory) {
  std::map<std::string, std::string> models;  // of each model, the first path by name
  bool sidecars = false;
  size_t entries = 0;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (++entries > kMaxDirectoryEntries) {
      return no_model(directory, cat("it has more than ", kMaxDirectoryEntries, " entries"));
    }
    const std::string path = entry->path().string();
    const std::string name = entry->path().filename().string();
    std::error_code ignored;
    if (!name.ends_with(kExtension) || entry->is_directory(ignored)) continue;
    if (name.starts_with(kSidecar)) {
      sidecars = true;
      continue;
    }
    const auto split = parse_split_name(path);
    // Parts of one model share prefix and count; '/' ends no file name, so the keys cannot meet.
    const std::string key = split ? cat(split->prefix, "/", split->count) : path;
    const auto [known, added] = models.emplace(key, path);
    if (!added && path < known->second) known->second = path;
  }
  if (error) return no_model(directory, error.message());
  if (models.size() > 1) return several_models(directory, models);
  if (models.size() == 1) return models.begin()->second;
  return no_model(directory, sidecars ? "only mtp-*.gguf files, which hold no whole model"
                                      : "no file name ends in .gguf");
}

}  // namespace topknot::gguf
