// Data files that come with the program (machines, catalogues): found by name, beside the program
// that runs, in a build tree as in an install tree that was moved.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topknot/error.h"

namespace topknot {

// How far above the program's or the library's folder share/topknot may stand:
// PREFIX/lib/x86_64-linux-gnu is two below PREFIX, build/release/src/device three.
inline constexpr int kMaxDataFolderLevels = 5;
inline constexpr size_t kMaxDataNames = 256;  // listed of one folder

// Every folder share/topknot/`kind` that this program sees, nearest first: that of
// TOPKNOT_DATA_DIR, if the variable is set, then those above the program and above this library.
std::vector<std::string> data_folders(std::string_view kind);

// Those among them above one program or library; a file need not exist for its folders to be asked.
std::vector<std::string> data_folders_above(const std::string& file, std::string_view kind);

// Names, without ".json", of what the folders of `kind` hold; sorted, each once.
std::vector<std::string> data_names(std::string_view kind);

// A path (with a slash or ending in .json) is taken as it is; anything else is a name among
// data_names(kind). kNotFound names the nearest and all others; `what` is for people: "machine".
Result<std::string> find_data_file(std::string_view kind, std::string_view name_or_path,
                                   std::string_view what);

}  // namespace topknot
