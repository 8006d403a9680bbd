// A small vocabulary for tests: the 256 byte tokens, then what `merges` make, then tokens by type.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/tokenizer.h"

namespace topknot::tokenizer {

class TestVocab {
 public:
  explicit TestVocab(std::string pre = "glm4") {
    data.model = "gpt2";
    data.pre = std::move(pre);
    for (int byte = 0; byte < 256; ++byte) {
      add(bytes_to_alphabet(std::string(1, static_cast<char>(byte))), TokenType::kNormal);
    }
  }
  TestVocab(const TestVocab&) = delete;
  TestVocab& operator=(const TestVocab&) = delete;

  int32_t add(std::string text, TokenType type) {
    data.tokens.push_back(keep(std::move(text)));
    data.types.push_back(type);
    return static_cast<int32_t>(data.tokens.size()) - 1;
  }
  // The token of left + right, both raw bytes, and the merge that makes it.
  int32_t merge(std::string_view left, std::string_view right) {
    const std::string a = bytes_to_alphabet(left);
    const std::string b = bytes_to_alphabet(right);
    data.merges.push_back(keep(a + " " + b));
    return add(a + b, TokenType::kNormal);
  }
  std::string_view keep(std::string text) { return texts_.emplace_back(std::move(text)); }

  TokenizerData data;

 private:
  std::deque<std::string> texts_;  // the views of `data` point here
};

}  // namespace topknot::tokenizer
