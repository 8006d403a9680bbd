// What `topknot --version` prints: the build, and what this machine offers it.
#pragma once

#include <string>

namespace topknot::device {

// Lines "name: value", ended by a newline; the first is "topknot VERSION (COMMIT)".
std::string version_report();

}  // namespace topknot::device
