// Messages for people, on standard error. Results go to standard output and never through here.
#pragma once

#include <string>
#include <string_view>

#include "base/strings.h"

namespace topknot {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

void set_log_level(LogLevel level);  // default kInfo

void log_message(LogLevel level, std::string_view message);

template <class... Args>
void log_debug(const Args&... args) {
  log_message(LogLevel::kDebug, cat(args...));
}
template <class... Args>
void log_info(const Args&... args) {
  log_message(LogLevel::kInfo, cat(args...));
}
template <class... Args>
void log_warning(const Args&... args) {
  log_message(LogLevel::kWarning, cat(args...));
}

}  // namespace topknot
