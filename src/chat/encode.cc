#include "chat/encode.h"

#include "base/try.h"

namespace topknot::chat {

Result<std::vector<int32_t>> encode(const Rendered& rendered,
                                    const tokenizer::Tokenizer& tokenizer) {
  using topknot::tokenizer::ParseSpecial;
  std::vector<int32_t> ids;
  for (const Segment& segment : rendered.segments) {
    TOPKNOT_TRY(
        const auto part,
        tokenizer.encode(segment.text, segment.trusted ? ParseSpecial::kYes : ParseSpecial::kNo));
    ids.insert(ids.end(), part.begin(), part.end());
  }
  tokenizer.prepend_bos(&ids);
  return ids;
}

}  // namespace topknot::chat
