// A shared library that exports topknot/backend_abi.h, as an attention::Backend.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "attention/attention.h"
#include "topknot/backend_abi.h"
#include "topknot/error.h"

namespace topknot::attention {

inline constexpr size_t kMaxLibraryNameBytes = 64;
inline constexpr size_t kMaxLibraryTextBytes = 400;  // of a description, or a text of a refusal
inline constexpr size_t kMaxLibraryRefusals = 64;
inline constexpr int64_t kMaxLibraryWorkspaceBytes = int64_t{1} << 50;

// A loaded library whose table says what it must. It stays loaded until the process ends: its code
// may have left threads or handlers behind.
class BackendLibrary {
 public:
  // Loads `path` and checks its table. kNotFound, kCorrupt for what is no shared library or has a
  // table with gaps, kUnsupported for one that cannot be linked or is of another version.
  static Result<std::shared_ptr<const BackendLibrary>> open(const std::string& path);

  const std::string& path() const { return path_; }
  const TopknotBackendAbi& table() const { return *table_; }
  std::string name() const;
  std::string description() const;
  bool on_host() const { return table_->memory == TOPKNOT_HOST_F32; }

 private:
  BackendLibrary(std::string path, const TopknotBackendAbi* table)
      : path_(std::move(path)), table_(table) {}

  std::string path_;
  const TopknotBackendAbi* table_;
};

// Which selections a tile was computed of, and compared.
struct Proven {
  bool sparse = false;
  bool dense = false;
};

// 1 to kMaxLibraryNameBytes of a-z 0-9 _ - .
bool is_backend_name(std::string_view name);

// The library's functions behind the interface of ours: its errors are Errors, exceptions that
// leave it too, and what was not proven is refused. `name` instead of its own, where not empty.
Backend backend_of(const std::shared_ptr<const BackendLibrary>& library, const std::string& name,
                   const Proven& proven);

}  // namespace topknot::attention
