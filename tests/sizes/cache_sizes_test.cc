// T-4.4: caches, block tables and score buffers of more than 2^31 elements and 2^32 bytes. Address
// space is reserved, and only pages that are touched take memory: each test stays below 100 MB.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "attention/indexer/indexer.h"
#include "attention/registry.h"
#include "kvcache/slot_map.h"
#include "sizes/large_array.h"

namespace topknot::test {
namespace {

using namespace attention;
using kvcache::Cache;
using kvcache::CacheRows;
using kvcache::kPageTokens;
using kvcache::KvFormat;

constexpr MlaShape kShape = {.heads = 4, .kv_lora_rank = 512, .qk_rope_head_dim = 64};
constexpr int64_t kWidth = 576;
constexpr int64_t kIndexWidth = 128;
constexpr int64_t kManySlots = 4'000'000;        // 2.3e9 elements of latent rows, 4.6 GB in bf16
constexpr int64_t kManyIndexSlots = 17'000'000;  // 2.2e9 elements of index rows, 4.4 GB
static_assert(kManySlots * kWidth > int64_t{1} << 31);
static_assert(kManyIndexSlots * kIndexWidth > int64_t{1} << 31);
constexpr int64_t kFarRows = int64_t{1}
                             << 30;  // pages of a block table's row, or scores of a token

#define SKIP_WITHOUT(array) \
  if (!(array).there()) GTEST_SKIP() << "the system refuses so much address space"

class SizesTest : public ::testing::Test {
 protected:
  Cache make_cache(const kvcache::CacheShape& shape, int64_t tokens) {
    auto cache = Cache::create(shape, tokens);
    EXPECT_TRUE(cache) << cache.error().to_string();
    return std::move(*cache);
  }
  std::vector<float> random_values(int64_t count) {
    std::vector<float> out(static_cast<size_t>(count));
    for (float& each : out) each = normal_(random_);
    return out;
  }
  std::mt19937 random_{20261130};
  std::normal_distribution<float> normal_;
  ThreadPool pool_{2};
};

// Slots whose offset, counted in elements or in bytes, is about a power of two that an index of 31
// or 32 bits ends at.
std::vector<int64_t> borders(int64_t slots, int64_t width, int64_t row_bytes) {
  std::vector<int64_t> out = {0, 1};
  for (const int64_t each : {width, row_bytes}) {
    for (const int bits : {31, 32}) {
      const int64_t slot = (int64_t{1} << bits) / each;
      for (int64_t near = slot - 1; near <= slot + 1; ++near) {
        if (near < slots && std::find(out.begin(), out.end(), near) == out.end()) {
          out.push_back(near);
        }
      }
    }
  }
  out.push_back(slots - 1);
  return out;
}

void expect_rows_are_apart(const CacheRows& rows) {
  const std::vector<int64_t> slots = borders(rows.slots, rows.width, rows.row_bytes);
  const auto value = [](int64_t slot, int64_t i) { return static_cast<float>((slot + i) % 251); };
  std::vector<float> row(static_cast<size_t>(rows.width));
  for (const int64_t slot : slots) {
    for (int64_t i = 0; i < rows.width; ++i) row[static_cast<size_t>(i)] = value(slot, i);
    kvcache::write_row(rows, slot, row.data());
  }
  for (const int64_t slot : slots) {
    kvcache::read_row(rows, slot, row.data());
    for (int64_t i = 0; i < rows.width; ++i) {
      ASSERT_EQ(row[static_cast<size_t>(i)], value(slot, i))
          << "slot " << slot << ", element " << i;
    }
  }
}

TEST_F(SizesTest, RowsBeyond32BitsAreWrittenAndReadWhereTheyAre) {
  const Cache latents = make_cache({KvFormat::kBf16, kWidth, 0, {false}}, kManySlots);
  EXPECT_GT(latents.reserved_bytes(), int64_t{1} << 32);
  expect_rows_are_apart(latents.latent_rows(0));
  const Cache keys = make_cache({KvFormat::kBf16, 16, kIndexWidth, {true}}, kManyIndexSlots);
  expect_rows_are_apart(keys.index_rows(0));
  const Cache wide = make_cache({KvFormat::kF32, kWidth, 0, {false, false}}, kManySlots);
  expect_rows_are_apart(wide.latent_rows(1));
}

TEST_F(SizesTest, APageThatIsUsedAgainIsZeroedWhereItIs) {
  Cache cache = make_cache({KvFormat::kBf16, kWidth, 0, {false}}, kManySlots);
  const CacheRows rows = cache.latent_rows(0);
  // The last page is handed out last: the free list is walked to it, which touches no row.
  int32_t page = 0;
  for (int64_t i = 0; i < cache.pages(); ++i) page = *cache.take_page();
  ASSERT_EQ(page, cache.pages() - 1);
  const std::vector<float> ones(kWidth, 1);
  kvcache::write_row(rows, rows.slots - 1, ones.data());
  kvcache::write_row(rows, 0, ones.data());
  cache.return_page(page);
  ASSERT_EQ(*cache.take_page(), page);
  std::vector<float> row(kWidth);
  kvcache::read_row(rows, rows.slots - 1, row.data());
  EXPECT_THAT(row, testing::Each(0.0f));
  kvcache::read_row(rows, 0, row.data());
  EXPECT_THAT(row, testing::Each(1.0f));
}

// The same rows in a small cache and, at the end of a large one, behind a block table whose row
// begins beyond 2^31 entries.
struct Twins {
  Cache small, large;
  std::vector<int32_t> small_pages, large_pages;

  // Pages `pages` of the large cache hold what pages 0, 1, ... of the small one do.
  static int64_t slot(const std::vector<int32_t>& pages, int64_t position) {
    return int64_t{pages[static_cast<size_t>(position / kPageTokens)]} * kPageTokens +
           position % kPageTokens;
  }
};

Twins make_twins(Cache small, Cache large, int64_t width, int64_t row_bytes) {
  Twins twins{std::move(small), std::move(large), {}, {}};
  const int64_t slots = twins.large.pages() * kPageTokens;
  for (const int64_t border : borders(slots, width, row_bytes)) {
    const auto page = static_cast<int32_t>(border / kPageTokens);
    const auto& pages = twins.large_pages;
    if (page > 0 && std::find(pages.begin(), pages.end(), page) == pages.end()) {
      twins.small_pages.push_back(static_cast<int32_t>(pages.size()));
      twins.large_pages.push_back(page);
    }
  }
  return twins;
}

struct Attended {
  std::vector<float> out, lse;
  bool operator==(const Attended&) const = default;
};

Attended attend(const Backend& backend, const Resources& resources, MlaArgs args) {
  Attended result;
  result.out.assign(static_cast<size_t>(args.tokens * kShape.heads * kShape.kv_lora_rank), NAN);
  result.lse.assign(static_cast<size_t>(args.tokens * kShape.heads), NAN);
  args.sm_scale = 0.05f;
  args.out = result.out.data();
  args.lse = result.lse.data();
  auto attention = backend.create(kShape, resources);
  EXPECT_TRUE(attention) << attention.error().to_string();
  int64_t most = 0;
  for (int64_t t = 0; args.dense.visible != nullptr && t < args.tokens; ++t) {
    most = std::max<int64_t>(most, args.dense.visible[t]);
  }
  EXPECT_TRUE((*attention)->plan({args.selection, args.tokens, args.sparse.topk, most}));
  EXPECT_TRUE((*attention)->run(args));
  return result;
}

// Every backend of the host with every instruction set.
template <class Body>
void for_each_backend(ThreadPool* pool, capability::Selection selection, const Body& body) {
  using capability::Fact;
  const auto asked = capability::Facts()
                         .set(Fact::kDevice, capability::DeviceKind::kCpu)
                         .set(Fact::kSelection, selection)
                         .set(Fact::kHeads, kShape.heads)
                         .set(Fact::kKvLoraRank, kShape.kv_lora_rank)
                         .set(Fact::kQkRopeHeadDim, kShape.qk_rope_head_dim)
                         .set(Fact::kTopk, int64_t{64})
                         .set(Fact::kKvFormat, KvFormat::kBf16)
                         .set(Fact::kPageTokens, int64_t{kPageTokens});
  int ran = 0;
  for (const RegistryEntry& entry : registry()) {
    if (entry.backend == nullptr) continue;
    if (!capability::refusals(entry.backend->rules, asked).empty()) continue;
    for (const ops::Kernels* kernels : ops::available_kernels()) {
      SCOPED_TRACE(testing::Message() << entry.name << ", " << kernels->name);
      Resources resources;
      resources.pool = pool;
      resources.kernels = kernels;
      body(*entry.backend, resources);
      ++ran;
    }
  }
  EXPECT_GE(ran, 2) << "the reference and another";
}

class AttentionSizesTest : public SizesTest {
 protected:
  void SetUp() override {
    const kvcache::CacheShape shape{KvFormat::kBf16, kWidth, 0, {false}};
    twins_.emplace(make_twins(make_cache(shape, 16 * kPageTokens), make_cache(shape, kManySlots),
                              kWidth, 2 * kWidth));
    keys_ = static_cast<int64_t>(twins_->large_pages.size()) * kPageTokens;
    ASSERT_LE(keys_, 16 * kPageTokens);
    for (int64_t position = 0; position < keys_; ++position) {
      const std::vector<float> row = random_values(kWidth);
      kvcache::write_row(twins_->small.latent_rows(0), Twins::slot(twins_->small_pages, position),
                         row.data());
      kvcache::write_row(twins_->large.latent_rows(0), Twins::slot(twins_->large_pages, position),
                         row.data());
    }
    q_ = random_values(kTokens * kShape.heads * kWidth);
  }
  static constexpr int64_t kTokens = 2;
  std::optional<Twins> twins_;
  int64_t keys_ = 0;
  std::vector<float> q_;
};

TEST_F(AttentionSizesTest, SelectedRowsBeyond32BitsAreReadWhereTheyAre) {
  std::vector<int32_t> small, large;
  for (int64_t t = 0; t < kTokens; ++t) {
    for (int64_t position = t; position < keys_; position += 3) {
      small.push_back(static_cast<int32_t>(Twins::slot(twins_->small_pages, position)));
      large.push_back(static_cast<int32_t>(Twins::slot(twins_->large_pages, position)));
    }
    const auto row = static_cast<size_t>((t + 1) * ((keys_ + 2) / 3));
    small.resize(row, -1);
    large.resize(row, -1);
  }
  const int64_t topk = (keys_ + 2) / 3;
  for_each_backend(&pool_, Selection::kSparse, [&](const Backend& backend, const Resources& on) {
    MlaArgs args;
    args.q = q_.data();
    args.tokens = kTokens;
    args.kv = twins_->small.latent_rows(0);
    args.sparse = {small.data(), topk};
    const Attended want = attend(backend, on, args);
    args.kv = twins_->large.latent_rows(0);
    args.sparse = {large.data(), topk};
    EXPECT_EQ(attend(backend, on, args), want) << "the same rows in the same order: the same bits";
  });
}

TEST_F(AttentionSizesTest, BlockTablesOfMoreThan31BitsAreReadWhereTheyAre) {
  const SparseArray<int32_t> table(4 * kFarRows);
  SKIP_WITHOUT(table);
  std::copy(twins_->large_pages.begin(), twins_->large_pages.end(), table.data() + 3 * kFarRows);
  const std::vector<int32_t> near(kTokens, 0);
  const std::vector<int32_t> far(kTokens, 3);
  const std::vector<int32_t> visible = {static_cast<int32_t>(keys_ - 70),
                                        static_cast<int32_t>(keys_)};
  for_each_backend(&pool_, Selection::kDense, [&](const Backend& backend, const Resources& on) {
    MlaArgs args;
    args.q = q_.data();
    args.tokens = kTokens;
    args.selection = Selection::kDense;
    args.kv = twins_->small.latent_rows(0);
    args.dense = {twins_->small_pages.data(), static_cast<int64_t>(twins_->small_pages.size()),
                  near.data(), visible.data()};
    const Attended want = attend(backend, on, args);
    args.kv = twins_->large.latent_rows(0);
    args.dense = {table.data(), kFarRows, far.data(), visible.data()};
    EXPECT_EQ(attend(backend, on, args), want);
  });
}

// Keys beyond 2^31 elements, a block table beyond 2^31 entries, and scores of three tokens whose
// rows are 2^30 apart.
TEST_F(SizesTest, TheIndexerCountsInSixtyFourBits) {
  const kvcache::CacheShape cache_shape{KvFormat::kBf16, 16, kIndexWidth, {true}};
  const Twins twins =
      make_twins(make_cache(cache_shape, 16 * kPageTokens),
                 make_cache(cache_shape, kManyIndexSlots), kIndexWidth, 2 * kIndexWidth);
  const auto keys = static_cast<int64_t>(twins.large_pages.size()) * kPageTokens;
  for (int64_t position = 0; position < keys; ++position) {
    const std::vector<float> key = random_values(kIndexWidth);
    kvcache::write_row(twins.small.index_rows(0), Twins::slot(twins.small_pages, position),
                       key.data());
    kvcache::write_row(twins.large.index_rows(0), Twins::slot(twins.large_pages, position),
                       key.data());
  }
  constexpr int64_t kTokens = 3;
  constexpr int64_t kTopk = 20;
  const SparseArray<int32_t> table(4 * kFarRows);
  const SparseArray<float> scores(kTokens * kFarRows);
  SKIP_WITHOUT(table);
  SKIP_WITHOUT(scores);
  std::copy(twins.large_pages.begin(), twins.large_pages.end(), table.data() + 3 * kFarRows);
  const IndexerShape shape{
      .heads = 4, .head_dim = kIndexWidth, .topk = kTopk, .max_tokens = 8, .max_context = keys};
  const std::vector<float> q = random_values(kTokens * shape.heads * shape.head_dim);
  const std::vector<float> weights(static_cast<size_t>(kTokens * shape.heads), 0.05f);
  const std::vector<int32_t> near(kTokens, 0);
  const std::vector<int32_t> far(kTokens, 3);
  const std::vector<int32_t> visible(kTokens, static_cast<int32_t>(keys));
  std::vector<int32_t> want(kTokens * kTopk), got(kTokens * kTopk);
  std::vector<float> want_scores(static_cast<size_t>(kTokens * keys));
  Resources resources;
  resources.pool = &pool_;
  resources.kernels = ops::available_kernels().front();
  for (const bool reference : {true, false}) {
    const auto indexer =
        reference ? make_reference_indexer(shape) : make_cpu_indexer(shape, resources);
    indexer->run({q.data(), weights.data(), twins.small.index_rows(0), twins.small_pages.data(),
                  static_cast<int64_t>(twins.small_pages.size()), near.data(), visible.data(),
                  kTokens, want.data(), want_scores.data(), keys});
    indexer->run({q.data(), weights.data(), twins.large.index_rows(0), table.data(), kFarRows,
                  far.data(), visible.data(), kTokens, got.data(), scores.data(), kFarRows});
    EXPECT_EQ(got, want);
    for (int64_t t = 0; t < kTokens; ++t) {
      for (int64_t j = 0; j < keys; ++j) {
        ASSERT_EQ(scores[t * kFarRows + j], want_scores[static_cast<size_t>(t * keys + j)])
            << "token " << t << ", key " << j;
      }
    }
  }
}

TEST(SlotMapSizes, RowsOfABlockTableBeyond31Bits) {
  const SparseArray<int32_t> table(4 * kFarRows);
  SKIP_WITHOUT(table);
  table[3 * kFarRows] = 5;
  table[4 * kFarRows - 1] = 7;
  constexpr auto kLast = std::numeric_limits<int32_t>::max();  // of page 2^30 - 1, of two tokens
  std::vector<int32_t> positions = {0, 1, kLast, kLast - 1};
  const std::vector<int32_t> requests = {3};
  std::vector<int32_t> slots(positions.size());
  EXPECT_EQ(kvcache::map_slots({positions, requests, table.span(), 1, 4, kFarRows, 2, slots,
                                std::span<int32_t>()}),
            0);
  EXPECT_EQ(slots, (std::vector<int32_t>{10, 11, 15, 14}));
}

TEST(SlotMapSizes, ASlotThat32BitsDoNotNumberIsReportedNotWrapped) {
  const std::vector<int32_t> table = {(1 << 25) - 1, 1 << 25, 1 << 26};
  const std::vector<int32_t> positions = {63, 64, 128};
  const std::vector<int32_t> requests = {0};
  std::vector<int32_t> slots(3);
  std::vector<int32_t> valid(1);
  EXPECT_EQ(kvcache::map_slots({positions, requests, table, 1, 3, 3, kPageTokens, slots, valid}),
            2);
  EXPECT_EQ(slots, (std::vector<int32_t>{std::numeric_limits<int32_t>::max(), -1, -1}));
  EXPECT_EQ(valid, std::vector<int32_t>{1});
}

TEST(CacheSizes, MoreThanCanBeAddressedIsAnErrorNotAWrappedNumber) {
  const kvcache::CacheShape wide{KvFormat::kF32, int64_t{1} << 21, 0,
                                 std::vector<bool>(4096, false)};
  const auto cache = Cache::create(wide, kvcache::kMaxSlots);  // 2^66 bytes
  ASSERT_FALSE(cache);
  EXPECT_EQ(cache.error().code, Code::kOutOfRange);
  const auto refused = Cache::create({KvFormat::kF32, int64_t{1} << 21, 0, {false}}, 1 << 30);
  ASSERT_FALSE(refused) << "2^53 bytes are more than a process can map";
  EXPECT_EQ(refused.error().code, Code::kResource);
}

}  // namespace
}  // namespace topknot::test
