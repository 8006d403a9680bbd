#include "topknot/error.h"

namespace topknot {

const char* code_name(Code code) {
  switch (code) {
    case Code::kInvalidArgument: return "invalid_argument";
    case Code::kNotFound: return "not_found";
    case Code::kCorrupt: return "corrupt";
    case Code::kUnsupported: return "unsupported";
    case Code::kOutOfRange: return "out_of_range";
    case Code::kResource: return "resource";
    case Code::kIo: return "io";
    case Code::kCancelled: return "cancelled";
  }
  return "unknown";
}

std::string Error::to_string() const {
  std::string out = what;
  const auto line = [&out](const char* label, const std::string& text) {
    if (text.empty()) return;
    out += "\n  ";
    out += label;
    // Later lines of a long reason stand under its first one.
    for (const char c : text) {
      out += c;
      if (c == '\n') out += "         ";
    }
  };
  line("where: ", where);
  line("why:   ", why);
  line("fix:   ", fix);
  return out;
}

}  // namespace topknot
