// A synthetic byte-level vocabulary of any size: the 256 byte tokens, merged tokens with consistent
// merges, and the special tokens of a model family where its published files have them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/encoder.h"

namespace topknot::synth {

struct Vocabulary {
  std::string pre;
  std::vector<std::string> tokens;
  std::vector<int32_t> types;  // tokenizer.ggml.token_type
  std::vector<std::string> merges;
  struct NamedId {
    std::string_view key;  // "bos_token_id"
    uint32_t id;
  };
  std::vector<NamedId> named;
  std::optional<bool> add_bos;
  std::string chat_template;
};

// The smallest size of a vocabulary of that pre-tokenizer; none for other names.
std::optional<int64_t> min_vocabulary(std::string_view pre);

// `size` at least min_vocabulary(). At the published size of a family (154,880 for glm4, 129,280
// for deepseek-v3, 102,400 for deepseek-llm, 163,840 for kimi-k2) the special tokens have their
// published ids; else they stand at the end.
Vocabulary make_vocabulary(std::string_view pre, int64_t size);

void add_vocabulary(const Vocabulary& vocabulary, gguf::MetadataEncoder* metadata);

}  // namespace topknot::synth
