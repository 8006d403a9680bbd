// The answers of a program built without GPU code.
#include "bench/attention_bench.h"
#include "bench/ceilings.h"
#include "bench/indexer_bench.h"

namespace topknot::bench {
namespace {

Error not_built() {
  return Error{.code = Code::kUnsupported,
               .what = "cannot measure a GPU",
               .where = "topknot bench",
               .why = "not built: this program has no GPU code",
               .fix = "configure with -DTOPKNOT_CUDA=ON"};
}

}  // namespace

Result<Ceilings> measure_ceilings(int) { return not_built(); }

std::vector<AttentionCase> attention_cases(bool) { return {}; }
Result<std::vector<Row>> bench_attention(int, std::span<const AttentionCase>, std::string_view,
                                         const std::function<void(size_t)>&) {
  return not_built();
}

std::vector<IndexerCase> indexer_cases(bool) { return {}; }
Result<std::vector<Row>> bench_indexer(int, std::span<const IndexerCase>,
                                       const std::function<void(size_t)>&) {
  return not_built();
}

}  // namespace topknot::bench
