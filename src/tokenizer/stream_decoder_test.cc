#include "tokenizer/stream_decoder.h"

#include <gtest/gtest.h>

#include <iterator>
#include <random>

#include "base/strings.h"
#include "tokenizer/test_vocab.h"

namespace topknot::tokenizer {
namespace {

int32_t byte_id(int byte) { return byte; }

TEST(StreamDecoder, HoldsBackUnfinishedCodePoints) {
  const TestVocab vocab;
  const auto tokenizer = Tokenizer::create(vocab.data);
  ASSERT_TRUE(tokenizer.has_value());
  StreamDecoder stream(*tokenizer);
  EXPECT_EQ(stream.push('a'), "a");
  EXPECT_EQ(stream.push(byte_id(0xF0)), "");
  EXPECT_EQ(stream.push(byte_id(0x9F)), "");
  EXPECT_EQ(stream.push(byte_id(0x98)), "");
  EXPECT_EQ(stream.push(byte_id(0x80)), "\U0001F600");
  EXPECT_EQ(stream.finish(), "");
}

TEST(StreamDecoder, ADanglingTailIsOneReplacement) {
  const TestVocab vocab;
  const auto tokenizer = Tokenizer::create(vocab.data);
  ASSERT_TRUE(tokenizer.has_value());
  StreamDecoder stream(*tokenizer);
  for (const int byte : {0xF0, 0x9F, 0x98}) EXPECT_EQ(stream.push(byte_id(byte)), "");
  EXPECT_EQ(stream.finish(), "\uFFFD");
  EXPECT_EQ(stream.finish(), "") << "nothing is left over";
  EXPECT_EQ(stream.push(byte_id(0xE4)), "");
  EXPECT_EQ(stream.push('b'), "\uFFFDb") << "the byte can no longer become a code point";
}

TEST(StreamDecoder, ControlTokensAreHiddenUnlessAskedFor) {
  TestVocab vocab;
  const int32_t user = vocab.add("<|user|>", TokenType::kControl);
  const int32_t think = vocab.add("</think>", TokenType::kUserDefined);
  const auto tokenizer = Tokenizer::create(vocab.data);
  ASSERT_TRUE(tokenizer.has_value());
  EXPECT_EQ(StreamDecoder(*tokenizer).push(user), "");
  EXPECT_EQ(StreamDecoder(*tokenizer).push(think), "</think>");
  EXPECT_EQ(StreamDecoder(*tokenizer, true).push(user), "<|user|>");
}

TEST(StreamDecoder, JoinedItIsTheDecodedTextMadeValid) {
  TestVocab vocab;
  vocab.merge("\x9F", "\x98");
  const auto tokenizer = Tokenizer::create(vocab.data);
  ASSERT_TRUE(tokenizer.has_value());
  constexpr int32_t kBytes[] = {'a', 0xF0, 0x9F, 0x98, 0x80, 0xE4, 0xB8, 0xC3, 0xFF, 256};
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::vector<int32_t> ids(random() % 12);
    for (int32_t& id : ids) id = kBytes[random() % std::size(kBytes)];
    StreamDecoder stream(*tokenizer);
    std::string joined;
    for (const int32_t id : ids) {
      const std::string part = stream.push(id);
      EXPECT_EQ(find_invalid_utf8(part), std::string::npos);
      joined += part;
    }
    joined += stream.finish();
    EXPECT_EQ(joined, to_valid_utf8(tokenizer->decode(ids, false)));
  }
}

}  // namespace
}  // namespace topknot::tokenizer
