// File names of split models, "<prefix>-00002-of-00010.gguf", and the model of a directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "topknot/error.h"

namespace topknot::gguf {

struct SplitName {
  std::string prefix;   // with its directory, if the parsed name had one
  uint32_t number = 0;  // counts from 1, as the name does; may be out of range
  uint32_t count = 0;
};

// None when `path` does not end like the name of a part.
std::optional<SplitName> parse_split_name(std::string_view path);

std::string split_name(std::string_view prefix, uint32_t number, uint32_t count);

// The path of the one model, or of one of its parts, in `directory`. Sidecars ("mtp-*.gguf") are
// passed over. kNotFound when there is no model; kInvalidArgument, listing them, when there are
// several.
Result<std::string> find_model(const std::string& directory);

}  // namespace topknot::gguf
