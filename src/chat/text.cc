#include "chat/text.h"

#include <algorithm>

namespace topknot::chat {

size_t Text::run_of(size_t offset) const {
  const auto run = std::upper_bound(runs_.begin(), runs_.end(), offset,
                                    [](size_t at, const Run& r) { return at < r.end; });
  return static_cast<size_t>(run - runs_.begin());
}

bool Text::trusted_at(size_t offset) const { return runs_[run_of(offset)].trusted; }

void Text::append(std::string_view bytes, bool trusted) {
  if (bytes.empty()) return;
  bytes_.append(bytes);
  if (!runs_.empty() && runs_.back().trusted == trusted) {
    runs_.back().end = bytes_.size();
  } else {
    runs_.push_back({bytes_.size(), trusted});
  }
}

void Text::append(const Text& other) { append(other, 0, other.size()); }

void Text::append(const Text& other, size_t begin, size_t end) {
  for (size_t run = begin < end ? other.run_of(begin) : 0; begin < end; ++run) {
    const size_t stop = std::min(end, other.runs_[run].end);
    append(std::string_view(other.bytes_).substr(begin, stop - begin), other.runs_[run].trusted);
    begin = stop;
  }
}

Text Text::slice(size_t begin, size_t end) const {
  Text out;
  out.append(*this, begin, end);
  return out;
}

}  // namespace topknot::chat
