// The bytes of a cached row: a latent row (kv_lora_rank + qk_rope_head_dim elements, of which the
// last qk_rope_head_dim are the `tail`) or an index key (no tail).
//   f32, bf16  `width` elements
//   fp8_ds     e4m3 [width - tail], one f32 scale for each 128 of them, bf16 [tail]: with 512 + 64
//              [0,512) e4m3 | [512,528) 4 x f32 | [528,656) bf16; with 128 + 0 it is 132 bytes
//   q8_0       GGML blocks of 32, f16 scale then 32 x i8, the tail among them: 612 for 512 + 64
// Oracle of the kernels that read and write them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capability/facts.h"

namespace topknot::kvcache {

using capability::KvFormat;

inline constexpr int64_t kFp8Group = 128;  // elements that share a scale of fp8_ds
inline constexpr int64_t kQ8Block = 32;    // elements of a block of q8_0
inline constexpr int64_t kQ8BlockBytes = 34;

// Bytes of one row of any format.
int64_t row_bytes(KvFormat format, int64_t width, int64_t tail);

// Rows of one layer: row s starts at data + s * row_bytes and holds `width` elements of `format`.
struct CacheRows {
  KvFormat format = KvFormat::kF32;
  std::byte* data = nullptr;
  int64_t width = 0;
  int64_t row_bytes = 0;
  int64_t slots = 0;
  int64_t tail = 0;

  bool empty() const { return data == nullptr; }
  std::byte* row(int64_t slot) const { return data + slot * row_bytes; }
};

// Writes `width` fp32 values as one row of the cache's format, rounded to nearest even. fp8_ds and
// q8_0 scale each group to its largest magnitude; a NaN makes all of its group NaN, through the
// scale: kernels may read the element itself as a number.
void write_row(const CacheRows& rows, int64_t slot, const float* values);
// Reads a row back as fp32.
void read_row(const CacheRows& rows, int64_t slot, float* values);

}  // namespace topknot::kvcache
