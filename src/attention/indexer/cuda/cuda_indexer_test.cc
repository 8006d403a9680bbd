// Needs a GPU. Conformance of the GPU indexer with the reference, T-2.4, T-2.5, T-4.1 and T-4.4.
#include "attention/indexer/cuda/cuda_indexer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include "attention/indexer/cuda/quantize_index.h"
#include "attention/indexer/top_k.h"
#include "support/gpu_fixture.h"
#include "tensor/dequantize.h"

namespace topknot::attention {
namespace {

using kvcache::kPageTokens;
using kvcache::KvFormat;

struct Spec {
  IndexerShape shape;  // max_context: keys of the first request
  KvFormat format = KvFormat::kBf16;
  int64_t requests = 2;
  int64_t tokens = 16;  // of all requests, in equal parts
  uint32_t seed = 1;
};

using tensor::bf16_to_f32;
using tensor::f32_to_bf16;

// x times the orthonormal Walsh-Hadamard matrix of 128, by its definition.
std::vector<float> rotated(const float* x) {
  std::vector<float> out;
  for (uint32_t i = 0; i < 128; ++i) {
    double sum = 0;
    for (uint32_t j = 0; j < 128; ++j) {
      sum += (std::popcount(i & j) % 2 == 0 ? 1.0 : -1.0) * static_cast<double>(x[j]);
    }
    out.push_back(static_cast<float>(sum / std::sqrt(128.0)));
  }
  return out;
}

// Requests over one cache, pages in a scrambled order, NaN in every row no request owns, no page
// behind a request's last.
struct Problem {
  Spec spec;
  std::vector<uint16_t> q_bits, key_bits;  // bf16; keys [slots, head_dim]
  std::vector<float> q, weights;           // q as the reference takes it
  std::vector<int32_t> table, requests, visible;
  std::vector<std::byte> row_bytes;
  kvcache::CacheRows rows;
  int64_t max_pages = 0;

  const IndexerShape& shape() const { return spec.shape; }
  int64_t slot(int64_t request, int64_t position) const {
    const int32_t page = table[static_cast<size_t>(request * max_pages + position / kPageTokens)];
    return int64_t{page} * kPageTokens + position % kPageTokens;
  }
};

Problem make_problem(const Spec& spec) {
  Problem p;
  p.spec = spec;
  std::mt19937 random(spec.seed);
  std::normal_distribution<float> normal;
  const int64_t context = spec.shape.max_context, dim = spec.shape.head_dim;
  p.max_pages = (context + kPageTokens - 1) / kPageTokens;
  const int64_t pages = spec.requests * p.max_pages + 1;
  p.table.resize(static_cast<size_t>(pages));
  std::iota(p.table.begin(), p.table.end(), 0);
  std::shuffle(p.table.begin(), p.table.end(), random);
  p.key_bits.assign(static_cast<size_t>(pages * kPageTokens * dim), 0x7FC0);  // NaN
  const int64_t each = spec.tokens / spec.requests;
  for (int64_t r = 0; r < spec.requests; ++r) {
    const int64_t length = r == 0 ? context : context / 2 + r;
    for (int64_t j = 0; j < length; ++j) {
      uint16_t* key = &p.key_bits[static_cast<size_t>(p.slot(r, j) * dim)];
      for (int64_t i = 0; i < dim; ++i) key[i] = f32_to_bf16(normal(random));
    }
    for (int64_t i = (length + kPageTokens - 1) / kPageTokens; i < p.max_pages; ++i) {
      p.table[static_cast<size_t>(r * p.max_pages + i)] = -1;
    }
    for (int64_t i = 0; i < each; ++i) {
      p.requests.push_back(static_cast<int32_t>(r));
      // Some below topk, some across a page or tile border, the last one sees everything.
      p.visible.push_back(static_cast<int32_t>(std::max<int64_t>(1, length - (each - 1 - i) * 37)));
    }
  }
  for (int64_t i = 0; i < spec.tokens * spec.shape.heads * dim; ++i) {
    p.q_bits.push_back(f32_to_bf16(normal(random)));
    p.q.push_back(bf16_to_f32(p.q_bits.back()));
  }
  for (int64_t i = 0; i < spec.tokens * spec.shape.heads; ++i) {
    p.weights.push_back(normal(random) / 50);
  }
  const int64_t bytes = kvcache::row_bytes(spec.format, dim, 0);
  p.row_bytes.resize(static_cast<size_t>(pages * kPageTokens * bytes));
  p.rows = {spec.format, p.row_bytes.data(), dim, bytes, pages * kPageTokens, 0};
  return p;
}

struct Outcome {
  std::vector<int32_t> positions;  // [tokens, topk]
  std::vector<float> scores;       // [tokens, stride]
  int64_t stride = 0;
};

class CudaIndexerTest : public test::GpuFixture {
 protected:
  cudaStream_t handle() const { return static_cast<cudaStream_t>(stream_.get()); }

  // Puts the keys into rows of the format, on the device and on the host, and rotates the
  // reference's queries where the keys are.
  device::DeviceBuffer store_keys(Problem* p) {
    if (p->spec.format == KvFormat::kBf16) {
      std::memcpy(p->row_bytes.data(), p->key_bits.data(), p->row_bytes.size());
      return upload(p->row_bytes);
    }
    const auto keys = upload(p->key_bits);
    std::vector<int32_t> slots(static_cast<size_t>(p->rows.slots));
    std::iota(slots.begin(), slots.end(), 0);
    const auto d_slots = upload(slots);
    auto rows = poisoned<std::byte>(static_cast<int64_t>(p->row_bytes.size()));
    EXPECT_EQ(launch_quantize_index_keys(
                  {keys.as<uint16_t>(), d_slots.as<int32_t>(), rows.as<std::byte>(), p->rows.slots},
                  handle()),
              cudaSuccess);
    p->row_bytes = download<std::byte>(rows, static_cast<int64_t>(p->row_bytes.size()));
    p->rows.data = p->row_bytes.data();
    for (size_t i = 0; i < p->q.size(); i += 128) {
      const auto turned = rotated(&p->q[i]);
      std::copy(turned.begin(), turned.end(), &p->q[i]);
    }
    return rows;
  }

  // Runs with poisoned outputs. `request_count` picks the kernel, not the result.
  Outcome run(const Problem& p, const device::DeviceBuffer& rows, int64_t request_count,
              bool exported = true) {
    Outcome out;
    out.stride = (p.shape().max_context + 3) / 4 * 4;
    const int64_t tokens = p.spec.tokens;
    const auto q = upload(p.q_bits);
    const auto weights = upload(p.weights);
    const auto table = upload(p.table), requests = upload(p.requests), visible = upload(p.visible);
    const auto positions = poisoned<int32_t>(tokens * p.shape().topk);
    const auto scores = poisoned<float>(tokens * out.stride);
    EXPECT_TRUE(device::fill(positions.data(), 0xAB, positions.bytes(), stream_));
    auto indexer = CudaIndexer::create(p.shape(), p.spec.format, stream_);
    EXPECT_TRUE(indexer) << indexer.error().to_string();
    CudaIndexerArgs args = {q.as<uint16_t>(), weights.as<float>(), p.rows};
    args.keys.data = rows.as<std::byte>();
    args.block_table = table.as<int32_t>();
    args.max_pages = p.max_pages;
    args.requests = requests.as<int32_t>();
    args.visible = visible.as<int32_t>();
    args.tokens = tokens;
    args.request_count = request_count;
    args.max_visible = p.shape().max_context;
    args.positions = positions.as<int32_t>();
    args.scores = exported ? scores.as<float>() : nullptr;
    args.scores_stride = out.stride;
    // Captured and replayed twice: run() only enqueues, and leaves its workspace clean.
    const auto graph = device::Graph::capture(stream_, [&] { return indexer->run(args, stream_); });
    EXPECT_TRUE(graph) << graph.error().to_string();
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(graph->launch(stream_));
    const Status done = stream_.synchronize();
    EXPECT_TRUE(done) << done.error().to_string();
    out.positions = download<int32_t>(positions, tokens * p.shape().topk);
    out.scores = download<float>(scores, tokens * out.stride);
    return out;
  }
};

// The selection is the exact one of the scores it was made from; rows of few keys take all.
void expect_exact_selection(const Problem& p, const Outcome& out) {
  const int64_t topk = p.shape().topk;
  for (int64_t t = 0; t < p.spec.tokens; ++t) {
    const int64_t visible = p.visible[static_cast<size_t>(t)];
    std::vector<int32_t> want(static_cast<size_t>(topk));
    const float* row = &out.scores[static_cast<size_t>(t * out.stride)];
    if (visible <= topk) {
      select_all(visible, topk, want.data());
      EXPECT_TRUE(std::isnan(row[0])) << "token " << t << " needs no scores";
    } else {
      select_top_k({row, static_cast<size_t>(visible)}, topk, want.data());
      EXPECT_TRUE(visible == out.stride || std::isnan(row[visible])) << "written behind the end";
    }
    const auto* got = &out.positions[static_cast<size_t>(t * topk)];
    ASSERT_TRUE(std::equal(want.begin(), want.end(), got)) << "token " << t;
  }
}

// Of a score, relative to the sum of |w_h| |q_h| |k|: a k-step of mma.sync may lose 2^-22 of its
// largest term; then fp32 sums over heads. fp8: the query is rounded to f16 after a rotation in
// fp32. The scores compared are rounded to fp32 too.
double score_epsilon(const Problem& p) {
  const auto heads = static_cast<double>(p.shape().heads);
  const auto steps = static_cast<double>(p.shape().head_dim) / 16;
  const double fp8 = p.spec.format == KvFormat::kFp8Ds ? 0x1p-11 + 0x1p-19 : 0;
  return (steps + 2) * 0x1p-22 + (heads + 5) * 0x1p-24 + fp8;
}

double norm(const float* values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  return std::sqrt(sum);
}

// Compares the scores of every `step`-th key, and of the last ones, with double sums.
void expect_scores(const Problem& p, const Outcome& out, int64_t step) {
  const int64_t heads = p.shape().heads, dim = p.shape().head_dim;
  std::vector<float> key(static_cast<size_t>(dim));
  const double epsilon = score_epsilon(p);
  for (int64_t t = 0; t < p.spec.tokens; ++t) {
    const int64_t visible = p.visible[static_cast<size_t>(t)];
    if (visible <= p.shape().topk) continue;
    for (int64_t j = 0; j < visible; j += j + 300 < visible ? step : 1) {
      kvcache::read_row(p.rows, p.slot(p.requests[static_cast<size_t>(t)], j), key.data());
      double want = 0, size = 0;
      for (int64_t h = 0; h < heads; ++h) {
        const float* q = &p.q[static_cast<size_t>((t * heads + h) * dim)];
        const auto weight = static_cast<double>(p.weights[static_cast<size_t>(t * heads + h)]);
        double dot = 0;
        for (size_t i = 0; i < key.size(); ++i) {
          dot += static_cast<double>(q[i]) * static_cast<double>(key[i]);
        }
        want += weight * std::max(dot, 0.0);
        size += std::fabs(weight) * norm(q, dim);
      }
      const auto got = static_cast<double>(out.scores[static_cast<size_t>(t * out.stride + j)]);
      const double limit = epsilon * size * norm(key.data(), dim);
      ASSERT_LE(std::fabs(got - want), limit) << got << " against " << want << ", token " << t
                                              << " key " << j << " seed " << p.spec.seed;
    }
  }
}

TEST_F(CudaIndexerTest, ScoresAndSelectionAgreeWithTheReference) {
  uint32_t seed = 0;
  for (const auto& [heads, dim, topk, context] : {std::array<int64_t, 4>{32, 128, 256, 1000},
                                                  {64, 128, 256, 1000},
                                                  {4, 128, 256, 1000},
                                                  {128, 128, 64, 300},
                                                  {1, 16, 2, 300},
                                                  {33, 64, 64, 513},
                                                  {5, 48, 64, 513},
                                                  {3, 32, 8, 9}}) {
    for (const KvFormat format : {KvFormat::kBf16, KvFormat::kFp8Ds}) {
      if (format == KvFormat::kFp8Ds && dim != 128) continue;
      Problem p = make_problem({{heads, dim, topk, 16, context}, format, 2, 16, ++seed});
      const auto rows = store_keys(&p);
      const Outcome decode = run(p, rows, p.spec.tokens);
      expect_exact_selection(p, decode);
      expect_scores(p, decode, 1);
      // The oracle itself, whose selection is that of its own, exact scores.
      std::vector<int32_t> positions(decode.positions.size());
      std::vector<float> scores(decode.scores.size(), NAN);
      make_reference_indexer(p.shape())->run(
          {p.q.data(), p.weights.data(), p.rows, p.table.data(), p.max_pages, p.requests.data(),
           p.visible.data(), p.spec.tokens, positions.data(), scores.data(), decode.stride});
      int64_t differ = 0;
      for (size_t i = 0; i < positions.size(); ++i) differ += positions[i] != decode.positions[i];
      // Scores closer than their error may change places at the threshold, and shift a few.
      if (format == KvFormat::kBf16) {
        EXPECT_LE(differ, static_cast<int64_t>(positions.size()) / 50);
      }
      // Whichever kernel computes them, whatever shares the call: the same bits.
      const Outcome prefill = run(p, rows, 1);
      EXPECT_EQ(std::memcmp(prefill.scores.data(), decode.scores.data(),
                            decode.scores.size() * sizeof(float)),
                0);
      EXPECT_EQ(prefill.positions, decode.positions);
    }
  }
}

// T-2.4
TEST_F(CudaIndexerTest, LengthsAroundEveryBorder) {
  for (const int64_t context :
       {2047, 2048, 2049, 8191, 8192, 8193, 65'535, 65'536, 65'537, 131'073, 262'145, 1'000'000}) {
    for (const KvFormat format : {KvFormat::kBf16, KvFormat::kFp8Ds}) {
      if (format == KvFormat::kFp8Ds && context > 65'537) continue;
      Problem p = make_problem({{32, 128, 2048, 2, context}, format, 1, 2, 5});
      const auto rows = store_keys(&p);
      const Outcome out = run(p, rows, context % 2 == 0 ? 1 : 2);
      SCOPED_TRACE(context);
      expect_exact_selection(p, out);
      expect_scores(p, out, 997);
      const Outcome unexported = run(p, rows, 1, false);
      EXPECT_EQ(unexported.positions, out.positions);
    }
  }
}

// T-2.5: one key that points where a head with a positive weight does.
TEST_F(CudaIndexerTest, FindsAPlantedKey) {
  constexpr int64_t kContext = 140'000;
  for (const KvFormat format : {KvFormat::kBf16, KvFormat::kFp8Ds}) {
    Problem p = make_problem({{32, 128, 2048, 3, kContext}, format, 1, 3, 21});
    const std::vector<int64_t> needles = {0, 77'777, kContext - 1 - 2 * 37};
    for (int64_t t = 0; t < 3; ++t) {
      for (int64_t h = 0; h < 32; ++h) p.weights[static_cast<size_t>(t * 32 + h)] = 0.01f;
      const int64_t slot = p.slot(0, needles[static_cast<size_t>(t)]);
      for (int64_t i = 0; i < 128; ++i) {
        const float q = bf16_to_f32(p.q_bits[static_cast<size_t>(t * 32 * 128 + i)]);
        p.key_bits[static_cast<size_t>(slot * 128 + i)] = f32_to_bf16(4 * q);
      }
    }
    const auto rows = store_keys(&p);
    const Outcome out = run(p, rows, 1);
    for (int64_t t = 0; t < 3; ++t) {
      const auto begin = out.positions.begin() + t * 2048;
      EXPECT_TRUE(std::binary_search(begin, begin + 2048, needles[static_cast<size_t>(t)])) << t;
    }
  }
}

// T-2.7 of the indexer: slices of the workspace change nothing.
TEST_F(CudaIndexerTest, ASelectionDoesNotDependOnTheSlice) {
  Problem p = make_problem({{32, 128, 64, 40, 3000}, KvFormat::kBf16, 2, 40, 31});
  const auto rows = store_keys(&p);
  const Outcome whole = run(p, rows, 2, false);
  p.spec.shape.max_context = int64_t{1} << 24;  // a slice is three rows
  EXPECT_LT(cuda_indexer_workspace_bytes(p.shape(), KvFormat::kBf16) / (int64_t{4} << 24), 40);
  // Memory of the scores is the workspace's: only what is visible is touched.
  auto indexer = CudaIndexer::create(p.shape(), KvFormat::kBf16, stream_);
  ASSERT_TRUE(indexer) << indexer.error().to_string();
  const auto q = upload(p.q_bits);
  const auto weights = upload(p.weights);
  const auto table = upload(p.table), requests = upload(p.requests), visible = upload(p.visible);
  const auto positions = poisoned<int32_t>(40 * 64);
  CudaIndexerArgs args = {q.as<uint16_t>(), weights.as<float>(), p.rows};
  args.keys.data = rows.as<std::byte>();
  args.block_table = table.as<int32_t>();
  args.max_pages = p.max_pages;
  args.requests = requests.as<int32_t>();
  args.visible = visible.as<int32_t>();
  args.tokens = 40;
  args.request_count = 2;
  args.max_visible = 3000;
  args.positions = positions.as<int32_t>();
  ASSERT_TRUE(indexer->run(args, stream_));
  EXPECT_EQ(download<int32_t>(positions, 40 * 64), whole.positions);
}

// T-4.1: what is allocated is counted, and runs allocate nothing.
TEST_F(CudaIndexerTest, TheWorkspaceIsBoundedAtAMillionTokensAndAnyChunk) {
  for (const int64_t context : {int64_t{1} << 12, int64_t{1} << 20, kMaxIndexerContext}) {
    for (const int64_t chunk : {1, 512, 8192}) {
      for (const KvFormat format : {KvFormat::kBf16, KvFormat::kFp8Ds}) {
        const IndexerShape shape = {64, 128, 2048, chunk, context};
        size_t before = 0, after = 0, total = 0;
        ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
        auto indexer = CudaIndexer::create(shape, format, stream_);
        ASSERT_TRUE(indexer) << indexer.error().to_string();
        ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
        EXPECT_LE(indexer->workspace_bytes(), kMaxIndexerWorkspaceBytes);
        EXPECT_EQ(indexer->workspace_bytes(), cuda_indexer_workspace_bytes(shape, format));
        constexpr int64_t kGranularity = 4 << 20;
        EXPECT_LE(static_cast<int64_t>(before - after), kMaxIndexerWorkspaceBytes + kGranularity);
      }
    }
  }
}

// T-4.4: keys behind 2^31 bytes and 2^31 elements.
TEST_F(CudaIndexerTest, KeysFarBehindTheFirst) {
  Problem p = make_problem({{32, 128, 64, 4, 500}, KvFormat::kBf16, 1, 4, 41});
  const auto near = store_keys(&p);
  const Outcome want = run(p, near, 1);
  constexpr int32_t kFarPage = (1 << 25) / kPageTokens;  // 2^32 elements, 2^33 bytes
  const size_t offset = size_t{kFarPage} * kPageTokens * 256;
  auto far = device::DeviceBuffer::allocate(0, offset + p.row_bytes.size(), "a test");
  if (!far) GTEST_SKIP() << "needs " << offset << " bytes of device memory";
  ASSERT_TRUE(device::copy_to_device(far->as<std::byte>() + offset, p.row_bytes.data(),
                                     p.row_bytes.size(), stream_));
  for (int32_t& page : p.table) page += page < 0 ? 0 : kFarPage;
  for (const int64_t request_count : {1, 4}) {
    const Outcome got = run(p, *far, request_count);
    EXPECT_EQ(got.positions, want.positions);
  }
}

}  // namespace
}  // namespace topknot::attention
