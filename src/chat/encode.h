// A rendered conversation to token ids: scaffolding and contents apart.
#pragma once

#include <cstdint>
#include <vector>

#include "chat/template.h"
#include "tokenizer/tokenizer.h"
#include "topknot/error.h"

namespace topknot::chat {

// Control tokens are recognised only in what the template wrote, so no content can forge a turn.
// BOS comes first, once, for models that want it.
Result<std::vector<int32_t>> encode(const Rendered& rendered,
                                    const tokenizer::Tokenizer& tokenizer);

}  // namespace topknot::chat
