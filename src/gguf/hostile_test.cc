// Damaged files: each must be refused or read as a sound model, and never touch a byte outside.
// Buffers are exactly as long as the file, so that a sanitizer build sees any step too far.
#include <gtest/gtest.h>

#include <memory>

#include "gguf/model_file.h"
#include "gguf/test_support.h"

namespace topknot::gguf {
namespace {

bool opens(std::span<const std::byte> bytes) {
  const auto exact = std::make_unique<std::byte[]>(bytes.size());
  std::copy(bytes.begin(), bytes.end(), exact.get());
  const auto model = ModelFile::from_memory({exact.get(), bytes.size()}, "hostile.gguf");
  if (model) return read_everything(*model) > 0;
  EXPECT_FALSE(model.error().why.empty());
  EXPECT_FALSE(model.error().fix.empty());
  EXPECT_LT(model.error().to_string().size(), 100'000u);
  return false;
}

TEST(HostileFile, CutAtEveryByte) {
  const Bytes whole = sample_model();
  uint64_t end = 0;  // of the last tensor; only padding follows
  const auto model = ModelFile::from_memory(whole, "whole.gguf");
  ASSERT_TRUE(model);
  for (const TensorInfo& tensor : model->tensors()) {
    end = std::max(end, tensor.file_offset + tensor.bytes);
  }
  for (size_t size = 0; size <= whole.size(); ++size) {
    ASSERT_EQ(opens(std::span(whole).first(size)), size >= end) << size;
  }
}

TEST(HostileFile, EveryByteOverwritten) {
  const Bytes whole = sample_model();
  const uint64_t header = ModelFile::from_memory(whole, "whole.gguf")->parts().front().data_begin;
  size_t refused = 0;
  for (size_t i = 0; i < header; ++i) {
    Bytes damaged = whole;
    for (const int value : {0x00, 0x01, 0x02, 0x07, 0x20, 0x7F, 0x80, 0xFE, 0xFF}) {
      damaged[i] = std::byte(value);
      refused += opens(damaged) ? 0 : 1;
    }
    damaged[i] = whole[i] ^ std::byte{0x10};
    refused += opens(damaged) ? 0 : 1;
  }
  EXPECT_GT(refused, header) << "damage mostly shows";
}

// Whole words: lengths, counts and offsets near the limits of 64 bits, at every position.
TEST(HostileFile, EveryWordOverwritten) {
  const Bytes whole = sample_model();
  const uint64_t header = ModelFile::from_memory(whole, "whole.gguf")->parts().front().data_begin;
  const uint64_t words[] = {0,          1,           0xFFFFFFFF,  1ULL << 32, 1ULL << 60,
                            1ULL << 61, 1ULL << 62,  1ULL << 63,  ~0ULL,      ~0ULL - 7,
                            ~0ULL - 31, ~0ULL - 511, whole.size()};
  size_t refused = 0;
  for (size_t i = 0; i + 8 <= header; ++i) {
    for (const uint64_t word : words) {
      Bytes damaged = whole;
      std::memcpy(damaged.data() + i, &word, sizeof(word));
      refused += opens(damaged) ? 0 : 1;
    }
  }
  EXPECT_GT(refused, header);
}

}  // namespace
}  // namespace topknot::gguf
