// What leaves the program: results on standard output, errors on standard error, an exit code.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "topknot/error.h"

namespace topknot::cli {

using Json = nlohmann::ordered_json;

inline constexpr int kExitUsage = 2;        // the command line could not be understood
inline constexpr int kExitFailed = 1;       // a check that was asked for failed
inline constexpr int kExitInterrupt = 130;  // what shells report for SIGINT
inline constexpr int kExitPipe = 141;       // what shells report for SIGPIPE

// The one table from an error to an exit code.
int exit_code(Code code);

// "error: what\n  where: ...", and the exit code to return.
int report(const Error& error);

// Writes to standard output, at once. When nobody reads it any more (`topknot ... | head -1`) the
// program ends quietly with kExitPipe; when it cannot be written, with an error.
void write_output(std::string_view text);
// One line.
void write_json(const Json& json);

// For people, on standard error; nothing happens when that is closed.
void write_message(std::string_view text);

// Text of a JSON string, whatever bytes came: each invalid sequence is one U+FFFD.
Json json_text(std::string_view bytes);
Json json_error(const Error& error);

}  // namespace topknot::cli
