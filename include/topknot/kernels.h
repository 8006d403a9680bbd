/* GPU kernels for other programs: MLA attention over selected or all rows, the DSA indexer that
 * selects them, and the position-to-slot map, over raw device pointers and a stream. C, and C++.
 * libtopknot_kernels.so holds them, in builds with TOPKNOT_CUDA; python/topknot_kernels.py takes
 * torch tensors.
 *
 *   topknot_mla* mla;
 *   topknot_mla_shape shape = {.struct_bytes = sizeof shape, .heads = 64, .kv_lora_rank = 512,
 *                              .qk_rope_head_dim = 64, .row_format = TOPKNOT_ROWS_BF16};
 *   topknot_mla_create(&shape, &mla);
 *   topknot_mla_plan(mla, &batch);         // once for each size of batch: host work
 *   topknot_mla_run(mla, &args, stream);   // only enqueues; can be captured in a graph
 *
 * Every function returns a topknot_status; topknot_last_error() has the sentences. Device pointers
 * are of the device that the object was made on, 16-byte aligned, row-major, innermost contiguous;
 * outputs alias no input. That each array is as large as said is the caller's promise: what lies in
 * device memory is not checked. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TOPKNOT_KERNELS_API __attribute__((visibility("default")))
#else
#define TOPKNOT_KERNELS_API
#endif

/* Grows when a struct or a function changes its meaning. `struct_bytes` is the sizeof of what the
 * caller was compiled with: a later version that adds members at the end still takes the shorter
 * struct. */
#define TOPKNOT_KERNELS_ABI_VERSION 1
TOPKNOT_KERNELS_API int32_t topknot_kernels_abi_version(void);

typedef int32_t topknot_status;
#define TOPKNOT_OK 0
#define TOPKNOT_INVALID_ARGUMENT 1 /* null, negative, misaligned, or not of the planned batch */
#define TOPKNOT_NOT_FOUND 2        /* no such device */
#define TOPKNOT_UNSUPPORTED 3      /* no kernel for this shape, format or device */
#define TOPKNOT_RESOURCE 4         /* device memory, or what the driver says */

/* What, where, why and what to do about the last failure of this thread; "" before the first. Valid
 * until the next call of this thread. */
TOPKNOT_KERNELS_API const char* topknot_last_error(void);

/* Bytes of a latent row of R + P elements. BF16: 2 (R + P). FP8_DS: R e4m3, one f32 scale for each
 * 128 of them, P bf16 (656 for 512 + 64). Q8_0: GGML blocks of 32 (612 for 512 + 64). */
typedef int32_t topknot_row_format;
#define TOPKNOT_ROWS_BF16 1
#define TOPKNOT_ROWS_FP8_DS 2
#define TOPKNOT_ROWS_Q8_0 3
TOPKNOT_KERNELS_API int64_t topknot_row_bytes(topknot_row_format format, int32_t kv_lora_rank,
                                              int32_t qk_rope_head_dim);

typedef struct topknot_mla topknot_mla; /* one thread at a time; owns its scratch */

typedef struct topknot_mla_shape {
  int64_t struct_bytes;
  int32_t device;           /* of the CUDA runtime */
  int32_t heads;            /* H: query heads of this rank, 1 to 128 */
  int32_t kv_lora_rank;     /* R */
  int32_t qk_rope_head_dim; /* P; D = R + P */
  topknot_row_format row_format;
  int32_t dense; /* 0: rows of a top-k list; 1: all rows up to `visible` */
} topknot_mla_shape;

typedef struct topknot_mla_batch {
  int64_t struct_bytes;
  int64_t tokens;
  int64_t topk;        /* K, the width of topk_slots; sparse */
  int64_t max_visible; /* the most keys that a token reads, or an upper bound; dense */
} topknot_mla_batch;

typedef struct topknot_mla_args {
  int64_t struct_bytes;
  const void* q;       /* bf16 [tokens, H, D]: first R already times W_UK, rope on the last P */
  const void* kv_rows; /* [slots, row_bytes] */
  int64_t slots;
  float sm_scale; /* 1/sqrt(qk_nope_head_dim + qk_rope_head_dim), times mscale^2 under YaRN */
  void* out;      /* bf16 [tokens, H, R]; zeros where nothing is selected */
  float* lse;     /* f32 [tokens, H], natural log; -inf where nothing is selected; may be null */
  /* sparse */
  const int32_t* topk_slots; /* i32 [tokens, K]; -1 is no entry, at any position */
  /* dense: keys 0 .. visible-1 through pages of 64 slots */
  const int32_t* block_table; /* i32 [requests, max_pages] */
  int64_t max_pages;
  const int32_t* requests; /* i32 [tokens]: row of the block table */
  const int32_t* visible;  /* i32 [tokens] */
} topknot_mla_args;

/* Chooses the first attention backend of this build that takes the shape; UNSUPPORTED lists every
 * one with its reasons. */
TOPKNOT_KERNELS_API topknot_status topknot_mla_create(const topknot_mla_shape* shape,
                                                      topknot_mla** mla);
TOPKNOT_KERNELS_API topknot_status topknot_mla_plan(topknot_mla* mla,
                                                    const topknot_mla_batch* batch);
/* `stream` is a cudaStream_t; null is the default stream. `args` are of the planned batch. */
TOPKNOT_KERNELS_API topknot_status topknot_mla_run(topknot_mla* mla, const topknot_mla_args* args,
                                                   void* stream);
TOPKNOT_KERNELS_API const char* topknot_mla_backend(const topknot_mla* mla);
TOPKNOT_KERNELS_API void topknot_mla_destroy(topknot_mla* mla); /* null is fine */

/* The DSA indexer: I[t, j] = sum over h of weights[t, h] * relu(q[t, h] . key[j]), j < visible[t];
 * fp32. The K largest of each token, ascending; equal scores: the lower position. */
typedef struct topknot_indexer
    topknot_indexer; /* one thread and stream at a time; owns its scratch */

typedef struct topknot_indexer_shape {
  int64_t struct_bytes;
  int32_t device;
  int32_t heads;    /* index_n_heads */
  int32_t head_dim; /* index_head_dim: a multiple of 16; 128 with FP8_DS keys */
  int32_t topk;     /* K */
  int64_t max_tokens;
  int64_t max_context;           /* keys of the longest request */
  topknot_row_format key_format; /* BF16, or FP8_DS: 128 e4m3 and a f32 scale, rotated by a
                                    Hadamard transform */
} topknot_indexer_shape;

typedef struct topknot_indexer_args {
  int64_t struct_bytes;
  const void* q;        /* bf16 [tokens, heads, head_dim] */
  const float* weights; /* f32 [tokens, heads], with heads^-0.5 * head_dim^-0.5 */
  const void* key_rows; /* [slots, row_bytes]: 2 head_dim, or 132 */
  int64_t slots;
  const int32_t* block_table; /* i32 [requests, max_pages]: pages of 64 slots */
  int64_t max_pages;
  const int32_t* requests; /* i32 [tokens]: row of the block table */
  const int32_t* visible;  /* i32 [tokens]: keys that the token sees */
  int64_t tokens;
  int64_t request_count; /* for speed only: of how many requests the tokens are */
  int64_t max_visible;   /* no token sees more */
  int32_t* positions;    /* i32 [tokens, K]: ascending, then -1 */
} topknot_indexer_args;

/* Takes at most 256 MiB of scratch up to contexts of 33 million keys; it is cleared on `stream`. */
TOPKNOT_KERNELS_API topknot_status topknot_indexer_create(const topknot_indexer_shape* shape,
                                                          void* stream, topknot_indexer** indexer);
/* Only enqueues. */
TOPKNOT_KERNELS_API topknot_status topknot_indexer_run(topknot_indexer* indexer,
                                                       const topknot_indexer_args* args,
                                                       void* stream);
TOPKNOT_KERNELS_API void topknot_indexer_destroy(topknot_indexer* indexer); /* null is fine */

typedef struct topknot_slot_map_args {
  int64_t struct_bytes;
  const int32_t* positions;   /* i32 [tokens, width]: positions in the request; negative is none */
  const int32_t* requests;    /* i32 [tokens]: row of the block table */
  const int32_t* block_table; /* i32 [requests, max_pages]; negative is no page */
  int64_t tokens;
  int64_t width;
  int64_t max_pages;
  int32_t page_tokens;    /* any page size */
  int32_t* slots;         /* i32 [tokens, width]: page * page_tokens + offset, or -1; may be
                             `positions` */
  int32_t* valid;         /* i32 [tokens]: entries that are not -1; may be null */
  uint64_t* out_of_range; /* [1], grows by each position outside of the table; may be null */
} topknot_slot_map_args;

TOPKNOT_KERNELS_API topknot_status topknot_slot_map(const topknot_slot_map_args* args,
                                                    void* stream);

#ifdef __cplusplus
}
#endif
