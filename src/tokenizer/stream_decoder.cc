#include "tokenizer/stream_decoder.h"

#include <utility>

#include "base/strings.h"

namespace topknot::tokenizer {

std::string StreamDecoder::push(int32_t id) {
  pending_ += tokenizer_->piece(id, special_);
  const size_t complete = complete_utf8_prefix(pending_);
  std::string text = to_valid_utf8(std::string_view(pending_).substr(0, complete));
  pending_.erase(0, complete);
  return text;
}

std::string StreamDecoder::finish() { return to_valid_utf8(std::exchange(pending_, {})); }

}  // namespace topknot::tokenizer
