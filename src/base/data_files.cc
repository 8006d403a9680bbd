#include "base/data_files.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/strings.h"

namespace topknot {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".json";

void add_once(std::vector<std::string>* list, std::string value) {
  if (std::find(list->begin(), list->end(), value) == list->end()) list->push_back(value);
}

// Where this code was loaded from: libtopknot.so of a stranger's program, or the program itself.
std::string own_binary() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&data_folders), &info) == 0) return {};
  return info.dli_fname == nullptr ? std::string() : std::string(info.dli_fname);
}

std::string all_of(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += cat(out.empty() ? "" : ", ", name);
  return out;
}

}  // namespace

std::vector<std::string> data_folders_above(const std::string& file, std::string_view kind) {
  std::vector<std::string> out;
  std::error_code ignored;
  fs::path folder = fs::weakly_canonical(file, ignored).parent_path();
  for (int level = 0; level <= kMaxDataFolderLevels && !folder.empty(); ++level) {
    const fs::path candidate = folder / "share" / "topknot" / kind;
    if (fs::is_directory(candidate, ignored)) out.push_back(candidate.string());
    if (folder == folder.root_path()) break;
    folder = folder.parent_path();
  }
  return out;
}

std::vector<std::string> data_folders(std::string_view kind) {
  std::vector<std::string> out;
  std::error_code ignored;
  if (const char* chosen = std::getenv("TOPKNOT_DATA_DIR"); chosen != nullptr && *chosen != 0) {
    const fs::path folder = fs::path(chosen) / kind;
    if (fs::is_directory(folder, ignored)) out.push_back(folder.string());
  }
  for (const std::string& binary : {std::string("/proc/self/exe"), own_binary()}) {
    for (std::string& folder : data_folders_above(binary, kind)) add_once(&out, std::move(folder));
  }
  return out;
}

std::vector<std::string> data_names(std::string_view kind) {
  std::vector<std::string> names;
  for (const std::string& folder : data_folders(kind)) {
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      if (names.size() == kMaxDataNames) break;
      if (it->path().extension() == kExtension) add_once(&names, it->path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::string> find_data_file(std::string_view kind, std::string_view name_or_path,
                                   std::string_view what) {
  const bool is_path =
      name_or_path.find('/') != std::string_view::npos || name_or_path.ends_with(kExtension);
  if (is_path) return std::string(name_or_path);
  std::error_code ignored;
  for (const std::string& folder : data_folders(kind)) {
    const fs::path file = fs::path(folder) / cat(name_or_path, kExtension);
    if (!name_or_path.empty() && fs::is_regular_file(file, ignored)) return file.string();
  }
  const std::vector<std::string> names = data_names(kind);
  const auto near = nearest(name_or_path, names, 1);
  Error error{.code = Code::kNotFound,
              .what = cat("no ", what, " is named '", printable(name_or_path), "'")};
  if (names.empty()) {
    error.why = cat("no folder share/topknot/", kind, " stands beside this program");
    error.fix = "give the path of a file, or set TOPKNOT_DATA_DIR to the folder share/topknot";
  } else {
    error.fix = cat(near.empty() ? "" : cat("did you mean '", near.front(), "'? "), "names are ",
                    all_of(names), "; or give the path of a file");
  }
  return error;
}

}  // namespace topknot
