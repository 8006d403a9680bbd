// Everything that is wrong with a model, collected so that one Error can say all of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "topknot/error.h"

namespace topknot::gguf {

class Problems {
 public:
  // Lines added from now on begin with "name: "; an empty name ends that.
  void set_file(std::string_view name);

  // Only the first kMaxReportedProblems lines are kept, so a hostile file cannot make a long
  // message.
  void add(Code code, std::string line, std::string_view fix);

  bool empty() const { return count_ == 0; }

  // kCorrupt if any problem is; otherwise the code of the first. Not to be called when empty().
  Error to_error(std::string_view path) const;

 private:
  uint64_t count_ = 0;
  Code code_ = Code::kCorrupt;
  std::string prefix_;
  std::vector<std::string> lines_;
  std::vector<std::string> fixes_;  // each once
};

}  // namespace topknot::gguf
