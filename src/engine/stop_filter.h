// Holds back text that could be the beginning of a stop string, whatever pieces it comes in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace topknot::engine {

class StopFilter {
 public:
  // Empty stop strings are ignored.
  explicit StopFilter(std::vector<std::string> stops);

  // Text that may be shown now. Once stopped() nothing more comes.
  std::string push(std::string_view text);
  // What was held back, when the text ends without a stop.
  std::string finish();
  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace topknot::engine
