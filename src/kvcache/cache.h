// The paged cache of latent rows and index-key rows.
//
// A page holds kPageTokens tokens in every layer. One page id means the latent rows *and* the index
// rows of those tokens: they are allocated, zeroed, freed and copied together. Index rows exist
// only in layers that run their own indexer.
//   slot = page * kPageTokens + offset
// Memory is reserved at once and touched only as pages come into use; a page is zeroed when it is
// handed out, so no row is ever read that holds what another sequence left. One thread owns a
// cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kvcache/row.h"
#include "topknot/error.h"

namespace topknot::kvcache {

inline constexpr int32_t kPageTokens = 64;
inline constexpr int64_t kMaxSlots = (int64_t{1} << 31) - kPageTokens;  // slots are int32

struct CacheShape {
  KvFormat format = KvFormat::kBf16;  // of latent and index rows
  int64_t latent_width = 0;           // kv_lora_rank + qk_rope_head_dim
  int64_t index_width = 0;            // index_head_dim; 0 when no layer has an indexer
  std::vector<bool> layer_has_index;  // one entry for each layer
  int64_t latent_tail = 0;            // of a latent row, the rotated part: qk_rope_head_dim

  int64_t bytes_per_token() const;
};

class Cache {
 public:
  // Room for `tokens`, rounded up to whole pages. kOutOfRange above kMaxSlots or 2^63 bytes,
  // kResource when the address space is refused.
  static Result<Cache> create(const CacheShape& shape, int64_t tokens);

  Cache(Cache&& other) noexcept;
  Cache& operator=(Cache&& other) noexcept;
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;
  ~Cache();

  const CacheShape& shape() const { return shape_; }
  int64_t pages() const { return pages_; }
  int64_t free_pages() const { return static_cast<int64_t>(free_.size()); }
  int64_t reserved_bytes() const { return bytes_; }

  CacheRows latent_rows(size_t layer) const { return latent_[layer]; }
  CacheRows index_rows(size_t layer) const { return index_[layer]; }  // empty() without an indexer

  // A zeroed page, or none when all are taken.
  std::optional<int32_t> take_page();
  void return_page(int32_t page);

 private:
  Cache() = default;
  void zero_page(int32_t page);

  CacheShape shape_;
  int64_t pages_ = 0;
  int64_t bytes_ = 0;
  std::byte* memory_ = nullptr;
  std::vector<CacheRows> latent_;
  std::vector<CacheRows> index_;
  std::vector<int32_t> free_;    // taken from the back
  std::vector<bool> used_once_;  // the memory of others is still zero from the kernel
  std::vector<bool> taken_;
};

// The pages of one sequence, in order of position.
class BlockTable {
 public:
  explicit BlockTable(Cache* cache) : cache_(cache) {}
  BlockTable(BlockTable&& other) noexcept;
  BlockTable& operator=(BlockTable&& other) noexcept;
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;
  ~BlockTable();

  // Takes pages until `tokens` fit; false, with nothing taken, when there are not enough.
  [[nodiscard]] bool grow(int64_t tokens);
  // Returns the pages behind the first `tokens`. Rows of the last page behind them stay and are
  // overwritten before any query can see them.
  void truncate(int64_t tokens);

  std::span<const int32_t> pages() const { return pages_; }
  int32_t slot(int64_t position) const {
    return pages_[static_cast<size_t>(position / kPageTokens)] * kPageTokens +
           static_cast<int32_t>(position % kPageTokens);
  }

 private:
  Cache* cache_;
  std::vector<int32_t> pages_;
};

}  // namespace topknot::kvcache
