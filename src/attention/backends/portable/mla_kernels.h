// MLA in absorbed (MQA) form on a GPU: out = softmax(q . row^T * sm_scale) . row[:R], over the rows
// that each token selects.
//   H heads on this rank   R kv_lora_rank   P qk_rope_head_dim   D = R + P
//   q      bf16  [tokens, H, D]   first R already multiplied by W_UK; rope applied to the last P
//   rows         [slots, row_bytes]  one latent row per slot, shared by all heads; see RowFormat
//   lists                         which rows a token reads; see RowLists
//   out    bf16  [tokens, H, R]   zeros where nothing is selected
//   lse    f32   [tokens, H]      natural log; -inf where nothing is selected; may be null
// Device memory, row-major, innermost contiguous, 16-byte aligned; out may not alias an input.
// Launches enqueue on `stream` and return the launch status; a later fault shows at the caller's
// next check. A row that no list names is never read into a product: it may hold NaN.
// Source: DeepSeek-V2 (arXiv:2405.04434) section 2.1; DeepSeek-V3.2 (DSA). Oracle:
// backends/cpu_reference/.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace topknot::attention::portable {

// bf16    D x bf16
// fp8_ds  [0, R) e4m3 | R/128 x f32 scale | P x bf16: 656 bytes for 512 + 64. e4m3's NaN reads as
// 480 q8_0    D/32 blocks of an fp16 scale and 32 x int8: 612 bytes for 512 + 64
enum class RowFormat : int32_t { kBf16, kFp8Ds, kQ8_0 };
inline constexpr int kRowFormats = 3;

// The rows of token t are rows 0 .. count-1 of its list, in order. Row i is in the list's page
// i >> page_shift, at the slot (page << page_shift) + the low bits of i; no row where page is -1.
// A top-k list is a list of pages of one row; a dense context is one of pages of 64.
struct RowLists {
  const int32_t* pages;    // i32 [lists, stride]
  int64_t stride;          // pages
  const int32_t* list_of;  // i32 [tokens]; null: token t has list t
  const int32_t* counts;   // i32 [tokens]; null: every token has `count` rows
  int32_t count;
  int32_t page_shift;
};

struct MlaKernelArgs {
  const void* q;
  const void* rows;
  RowLists lists;
  void* out;
  float* lse;
  int32_t row_bytes;
  // Used when splits > 1: each token's list is cut into `splits` parts of whole tiles. Summed by
  // the last block of each token and tile of heads where there are tickets, else by
  // launch_combine().
  float* partial_out;  // f32 [tokens, splits, H, R], each normalised by its own sum
  float* partial_lse;  // f32 [tokens, splits, H], base 2; -inf where the part is empty
  uint32_t*
      tickets;  // u32 [tokens, tiles of heads], zeros before and after; null unless splits = 2
  int64_t tokens;
  int32_t heads;
  int32_t kv_lora_rank;
  int32_t qk_rope_head_dim;
  int32_t splits;
  float sm_scale;
};

// The tiled kernel, for R = 512 and P a multiple of 8 up to 64: tile_heads (16, 32 or 64) heads of
// a token to a block, and as many blocks as that and the splits make.
struct TiledKernel {
  RowFormat format;
  int tile_heads;
};

// Allows the kernel its shared memory on the current device and says how many of its blocks one
// multiprocessor holds. To be called once before the first launch, outside of stream capture.
cudaError_t prepare_tiled_mla(const TiledKernel& kernel, int* blocks_per_sm);
cudaError_t launch_tiled_mla(const TiledKernel& kernel, const MlaKernelArgs& args,
                             cudaStream_t stream);

// The same for any R and P that are multiples of 8, up to R + P = kGenericMaxWidth (tile_shape.h);
// tickets must be null. At most 3 times the tiled kernel's time per byte.
cudaError_t prepare_generic_mla(RowFormat format, int width, int* blocks_per_sm);
cudaError_t launch_generic_mla(RowFormat format, const MlaKernelArgs& args, cudaStream_t stream);

// Sums the partial results into out and lse: after a launch with splits > 1 and no tickets.
cudaError_t launch_combine(const MlaKernelArgs& args, cudaStream_t stream);

}  // namespace topknot::attention::portable
