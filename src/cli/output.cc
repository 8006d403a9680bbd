#include "cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/strings.h"

namespace topknot::cli {
namespace {

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

}  // namespace

int exit_code(Code code) {
  switch (code) {
    case Code::kInvalidArgument: return kExitUsage;
    case Code::kNotFound: return 3;
    case Code::kCorrupt: return 4;
    case Code::kUnsupported: return 5;
    case Code::kOutOfRange: return 6;
    case Code::kResource: return 7;
    case Code::kIo: return 8;
    case Code::kCancelled: return kExitInterrupt;
  }
  return kExitFailed;
}

int report(const Error& error) {
  write_message(cat("error: ", error.to_string(), "\n"));
  return exit_code(error.code);
}

void write_output(std::string_view text) {
  if (write_all(STDOUT_FILENO, text)) return;
  const int error = errno;
  // Not through exit(): an answer may be under way, and its threads hold what exit() destroys.
  if (error == EPIPE) std::_Exit(kExitPipe);
  std::_Exit(report(Error{.code = Code::kIo,
                          .what = "standard output cannot be written",
                          .why = std::strerror(error),
                          .fix = "check the disk and the place that output is sent to"}));
}

void write_json(const Json& json) {
  write_output(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void write_message(std::string_view text) { write_all(STDERR_FILENO, text); }

Json json_text(std::string_view bytes) { return to_valid_utf8(bytes); }

Json json_error(const Error& error) {
  return {{"code", code_name(error.code)},
          {"what", json_text(error.what)},
          {"where", json_text(error.where)},
          {"why", json_text(error.why)},
          {"fix", json_text(error.fix)}};
}

}  // namespace topknot::cli
