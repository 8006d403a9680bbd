// The GPU attention backends of the registry over the shapes of GLM-5 and DeepSeek-V3.2: latent
// 512, rope 64, one latent row for all heads.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attention/attention.h"
#include "bench/row.h"

namespace topknot::bench {

struct AttentionCase {
  attention::Selection selection = attention::Selection::kSparse;
  kvcache::KvFormat format = kvcache::KvFormat::kBf16;
  int64_t heads = 0;
  int64_t tokens = 0;
  // Decode: every token is of a request of its own, with so many keys. Prefill: the tokens are the
  // last ones of one request.
  int64_t context = 0;
  int64_t topk = 0;  // sparse: keys that a token reads
  bool prefill = false;
};

// Sparse decode at 1 to 128 tokens and 8 to 128 heads, prefill of 4096, dense decode at 32K; each
// row format where it matters. `quick`: one of each kind.
std::vector<AttentionCase> attention_cases(bool quick);

// One row for each case and each GPU backend that takes it, or the backend named. The result is
// checked before it is timed: out against a double reference on three tokens and three heads.
// `done` is called after each case.
Result<std::vector<Row>> bench_attention(int cuda_device, std::span<const AttentionCase> cases,
                                         std::string_view backend,
                                         const std::function<void(size_t)>& done);

}  // namespace topknot::bench
