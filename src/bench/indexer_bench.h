// The CUDA indexer over the shapes of GLM-5 and DeepSeek-V3.2: 32 heads of 128, top-k 2048.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "bench/row.h"
#include "kvcache/row.h"
#include "topknot/error.h"

namespace topknot::bench {

struct IndexerCase {
  int64_t tokens = 0;
  int64_t context = 0;  // keys of each request; of prefill's one request
  bool prefill = false;
  kvcache::KvFormat format = kvcache::KvFormat::kBf16;  // of the keys
};

std::vector<IndexerCase> indexer_cases(bool quick);

// Scores and selection within the bounded workspace. Checked on three tokens: every key taken
// scores at least as much in double as every key left out, but for rounding; the count and the
// order are right.
Result<std::vector<Row>> bench_indexer(int cuda_device, std::span<const IndexerCase> cases,
                                       const std::function<void(size_t)>& done);

}  // namespace topknot::bench
