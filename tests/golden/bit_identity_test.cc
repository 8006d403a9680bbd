// T-2.7 on the CPU: however a sequence is cut into steps, and on however many threads, every logit
// has the same bits.
#include <gtest/gtest.h>

#include "golden/tiny_checks.h"
#include "ops/cpu/kernels.h"

namespace topknot::test {
namespace {

constexpr size_t kTokens = 700;  // sparse from the 257th on

std::vector<int32_t> sequence() {
  std::vector<int32_t> ids = must(load_indexer()).ids;
  ids.resize(kTokens);
  return ids;
}

Matrix run(RunnerOptions path, int64_t chunk, int threads) {
  path.chunk = chunk;
  path.threads = threads;
  const auto runner = open_tiny(path, 1024);
  Matrix logits = runner->feed_all(sequence());
  EXPECT_EQ(runner->stats().sparse_queries, int64_t{kTokens} - 256);
  return logits;
}

TEST(BitIdentity, ChunksAndThreads) {
  const Matrix whole = run(user_path(), kTokens, 1);
  for (const int64_t chunk : {1, 7, 64, 512}) {
    expect_same_bits(run(user_path(), chunk, 1), whole, "chunk " + std::to_string(chunk));
    expect_same_bits(run(user_path(), chunk, 2), whole,
                     "chunk " + std::to_string(chunk) + ", 2 threads");
  }
  expect_same_bits(run(user_path(), kTokens, 2), whole, "one shot, 2 threads");
}

TEST(BitIdentity, EverySetOfKernels) {
  for (const ops::Kernels* kernels : ops::available_kernels()) {
    RunnerOptions path = user_path();
    path.kernels = kernels->name;
    expect_same_bits(run(path, 7, 2), run(path, 512, 1), kernels->name);
  }
}

TEST(BitIdentity, Fp32RowsAndBf16Activations) {
  RunnerOptions path = fast_path();
  expect_same_bits(run(path, 7, 2), run(path, kTokens, 1), "f32 rows");
  path = user_path();
  path.dtype = capability::ActivationType::kBf16;
  expect_same_bits(run(path, 7, 2), run(path, kTokens, 1), "bf16 activations");
}

// A prompt in chunks and then token by token, as generation does it; on other pages the second
// time.
TEST(BitIdentity, PromptThenTokenByToken) {
  const std::vector<int32_t> ids = sequence();
  const auto runner = open_tiny(user_path(), 1024);
  const Matrix whole = runner->feed_all(ids);
  runner->reset();
  Matrix mixed = runner->feed_all({ids.data(), 601});
  for (size_t t = 601; t < ids.size(); ++t) {
    const std::vector<float> logits = runner->feed_last({&ids[t], 1});
    mixed.values.insert(mixed.values.end(), logits.begin(), logits.end());
  }
  expect_same_bits(mixed, whole, "601 tokens, then one by one");
}

// Dense attention over the block table and sparse attention over slots of the same keys.
TEST(BitIdentity, SelectionOfEverythingIsDense) {
  const std::vector<int32_t> ids = sequence();
  RunnerOptions path = user_path();
  path.dense = true;
  const Matrix dense = open_tiny(path, 1024)->feed_all(ids);
  path.dense = false;
  path.context = 1024;
  // The last query is sparse, so that all the others of its step take the sparse path with every
  // key.
  path.chunk = kTokens;
  const auto runner =
      open_model(bundled_model_path(), path, {"glm-dsa.attention.indexer.top_k=int:699"});
  Matrix sparse = runner->feed_all(ids);
  EXPECT_EQ(runner->stats().sparse_queries, 1);
  EXPECT_GT(difference(sparse.row(699), dense.row(699)).largest, 0);
  Matrix all_but_last = dense;
  for (Matrix* m : {&sparse, &all_but_last}) m->values.resize(699 * m->columns);
  expect_same_bits(sparse, all_but_last, "top-k 699 of 700");
}

}  // namespace
}  // namespace topknot::test
