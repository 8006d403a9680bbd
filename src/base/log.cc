#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace topknot {
namespace {

spdlog::logger& logger() {
  // Leaked on purpose: a message from a destructor at exit must still find it.
  static auto& instance = *new std::shared_ptr<spdlog::logger>([] {
    auto made = std::make_shared<spdlog::logger>(
        "topknot", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%^%l:%$ %v");
    return made;
  }());
  return *instance;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
    case LogLevel::kOff: return spdlog::level::off;
  }
  return spdlog::level::info;
}

}  // namespace

void set_log_level(LogLevel level) { logger().set_level(to_spdlog(level)); }

void log_message(LogLevel level, std::string_view message) {
  logger().log(to_spdlog(level), "{}", message);
}

}  // namespace topknot
