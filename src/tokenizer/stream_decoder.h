// Ids to text as they are generated: always valid UTF-8, never a part of a code point.
#pragma once

#include <string>

#include "tokenizer/tokenizer.h"

namespace topknot::tokenizer {

// All text returned, joined, is to_valid_utf8(decode(all ids)). One per stream; not thread-safe.
class StreamDecoder {
 public:
  // `tokenizer` must outlive it. `special` as in Tokenizer::decode.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool special = false)
      : tokenizer_(&tokenizer), special_(special) {}

  // The text that is complete with this token; empty while a code point is still open.
  std::string push(int32_t id);
  // After the last token: U+FFFD if a code point stayed open. The decoder can then be used again.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  bool special_;
  std::string pending_;  // at most 3 bytes between calls
};

}  // namespace topknot::tokenizer
