#include "kvcache/cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/checked_math.h"
#include "base/strings.h"

namespace topknot::kvcache {
namespace {

constexpr int64_t kRegionAlignment = 4096;  // each layer's rows begin on a page of their own

int64_t round_up(int64_t value, int64_t step) { return ceil_div(value, step) * step; }

Error too_many_bytes(const CacheShape& shape, int64_t tokens) {
  return {.code = Code::kOutOfRange,
          .what = "the cache has more bytes than can be addressed",
          .why = cat(tokens, " tokens of ", shape.bytes_per_token(), " bytes each"),
          .fix = "ask for a smaller context with -c"};
}

}  // namespace

int64_t CacheShape::bytes_per_token() const {
  const auto indexers =
      static_cast<int64_t>(std::count(layer_has_index.begin(), layer_has_index.end(), true));
  const auto layers = static_cast<int64_t>(layer_has_index.size());
  return layers * row_bytes(format, latent_width, latent_tail) +
         indexers * row_bytes(format, index_width, 0);
}

Result<Cache> Cache::create(const CacheShape& shape, int64_t tokens) {
  TOPKNOT_ASSERT(tokens > 0 && shape.latent_width > 0);
  if (tokens > kMaxSlots) {
    return Error{.code = Code::kOutOfRange,
                 .what = "the cache is too long",
                 .why = cat(tokens, " tokens; slots are 32-bit, so at most ", kMaxSlots),
                 .fix = "ask for a smaller context with -c"};
  }
  Cache cache;
  cache.shape_ = shape;
  cache.pages_ = ceil_div<int64_t>(tokens, kPageTokens);
  const int64_t slots = cache.pages_ * kPageTokens;
  const int64_t latent_bytes = row_bytes(shape.format, shape.latent_width, shape.latent_tail);
  const int64_t index_bytes = row_bytes(shape.format, shape.index_width, 0);
  const int64_t latent_region = round_up(slots * latent_bytes, kRegionAlignment);
  const int64_t index_region = round_up(slots * index_bytes, kRegionAlignment);
  for (const bool has_index : shape.layer_has_index) {
    const int64_t layer = latent_region + (has_index ? index_region : 0);
    if (add_overflows(cache.bytes_, layer, &cache.bytes_)) return too_many_bytes(shape, tokens);
  }
  void* memory = ::mmap(nullptr, static_cast<size_t>(cache.bytes_), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return Error{.code = Code::kResource,
                 .what = "cannot reserve the cache",
                 .why = cat(human_bytes(static_cast<uint64_t>(cache.bytes_)), " for ", slots,
                            " tokens: ", std::strerror(errno)),
                 .fix = "ask for a smaller context with -c"};
  }
  cache.memory_ = static_cast<std::byte*>(memory);
  std::byte* next = cache.memory_;
  for (const bool has_index : shape.layer_has_index) {
    cache.latent_.push_back(
        {shape.format, next, shape.latent_width, latent_bytes, slots, shape.latent_tail});
    next += latent_region;
    cache.index_.push_back(
        {shape.format, has_index ? next : nullptr, shape.index_width, index_bytes, slots});
    if (has_index) next += index_region;
  }
  for (int64_t page = cache.pages_ - 1; page >= 0; --page) {
    cache.free_.push_back(static_cast<int32_t>(page));
  }
  cache.used_once_.resize(static_cast<size_t>(cache.pages_));
  cache.taken_.resize(static_cast<size_t>(cache.pages_));
  return cache;
}

Cache::Cache(Cache&& other) noexcept { *this = std::move(other); }

Cache& Cache::operator=(Cache&& other) noexcept {
  std::swap(shape_, other.shape_);
  std::swap(pages_, other.pages_);
  std::swap(bytes_, other.bytes_);
  std::swap(memory_, other.memory_);
  std::swap(latent_, other.latent_);
  std::swap(index_, other.index_);
  std::swap(free_, other.free_);
  std::swap(used_once_, other.used_once_);
  std::swap(taken_, other.taken_);
  return *this;
}

Cache::~Cache() {
  if (memory_ != nullptr) ::munmap(memory_, static_cast<size_t>(bytes_));
}

std::optional<int32_t> Cache::take_page() {
  if (free_.empty()) return std::nullopt;
  const int32_t page = free_.back();
  free_.pop_back();
  const auto i = static_cast<size_t>(page);
  if (used_once_[i]) zero_page(page);
  used_once_[i] = true;
  taken_[i] = true;
  return page;
}

void Cache::return_page(int32_t page) {
  TOPKNOT_ASSERT(page >= 0);
  TOPKNOT_ASSERT(page < pages_);
  TOPKNOT_ASSERT(taken_[static_cast<size_t>(page)]);
  taken_[static_cast<size_t>(page)] = false;
  free_.push_back(page);
}

void Cache::zero_page(int32_t page) {
  const int64_t first = int64_t{page} * kPageTokens;
  for (const auto* layers : {&latent_, &index_}) {
    for (const CacheRows& rows : *layers) {
      if (rows.empty()) continue;
      std::memset(rows.row(first), 0, static_cast<size_t>(rows.row_bytes * kPageTokens));
    }
  }
}

BlockTable::BlockTable(BlockTable&& other) noexcept
    : cache_(other.cache_), pages_(std::exchange(other.pages_, {})) {}

BlockTable& BlockTable::operator=(BlockTable&& other) noexcept {
  std::swap(cache_, other.cache_);
  std::swap(pages_, other.pages_);
  return *this;
}

BlockTable::~BlockTable() { truncate(0); }

bool BlockTable::grow(int64_t tokens) {
  const int64_t needed = ceil_div<int64_t>(tokens, kPageTokens);
  const int64_t missing = needed - static_cast<int64_t>(pages_.size());
  if (missing > cache_->free_pages()) return false;
  for (int64_t i = 0; i < missing; ++i) pages_.push_back(*cache_->take_page());
  return true;
}

void BlockTable::truncate(int64_t tokens) {
  const auto keep = static_cast<size_t>(ceil_div<int64_t>(tokens, kPageTokens));
  while (pages_.size() > keep) {
    cache_->return_page(pages_.back());
    pages_.pop_back();
  }
}

}  // namespace topknot::kvcache
