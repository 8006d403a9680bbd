#include "gguf/problems.h"

#include <algorithm>

#include "base/assert.h"
#include "base/strings.h"
#include "gguf/model_file.h"

namespace topknot::gguf {

void Problems::set_file(std::string_view name) {
  prefix_ = name.empty() ? std::string() : cat(printable(name, 255), ": ");
}

void Problems::add(Code code, std::string line, std::string_view fix) {
  if (count_ == 0 || code == Code::kCorrupt) code_ = code;
  ++count_;
  if (lines_.size() == kMaxReportedProblems) return;
  lines_.push_back(prefix_ + line);
  if (std::find(fixes_.begin(), fixes_.end(), fix) == fixes_.end()) fixes_.emplace_back(fix);
}

Error Problems::to_error(std::string_view path) const {
  TOPKNOT_ASSERT(count_ > 0);
  std::string why;
  for (const std::string& line : lines_) why += cat(why.empty() ? "" : "\n", line);
  if (count_ > lines_.size()) why += cat("\nand ", count_ - lines_.size(), " more");
  std::string fix;
  for (const std::string& one : fixes_) fix += cat(fix.empty() ? "" : "\n", one);
  return Error{.code = code_,
               .what = "cannot open the model",
               .where = printable(path, 4096),
               .why = std::move(why),
               .fix = std::move(fix)};
}

}  // namespace topknot::gguf
