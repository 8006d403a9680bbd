// Attention backends from shared libraries: the interface, in plain C (C11, or C++).
//
//   topknot run -m model.gguf --backend-library ./mine.so
//
// A library exports one function, topknot_backend_abi(), which returns a table of functions. Before
// a model is opened the table is checked, and a small tile is computed with it and compared with
// the scalar reference, in a child process: what crashes, hangs or computes something else there is
// refused with the reason. docs/backends.md says how libraries are named and placed;
// examples/backend_library/ is a complete one.
//
// What is computed, for each token t and query head h (multi-head latent attention in absorbed
// form, DeepSeek-V2, arXiv:2405.04434, section 2.1):
//   out[t,h] = softmax(q[t,h] . row^T * sm_scale) . row[:R], over the rows that t reads
//   lse[t,h] = log(sum(exp(q[t,h] . row^T * sm_scale)))
// with H heads on this rank, R = kv_lora_rank, P = qk_rope_head_dim, D = R + P.
//
// Versions. TOPKNOT_BACKEND_ABI_VERSION changes only when a field changes its meaning or place, and
// then a library must be compiled again. New fields are appended to a structure, never inserted:
// each begins with its size in bytes as its writer knew it, and what lies behind that size must not
// be read. A table must have at least the fields of this header's version 1.
//
// Calls. `name` to `workspace_bytes` may be used from any thread at any time. An object made by
// create() is used by one thread at a time. No function may throw, exit, or block without end.
// Pointers are the caller's and valid during the call, unless said otherwise; texts are UTF-8 and
// end with a zero. A library stays loaded until the process ends.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TOPKNOT_BACKEND_ABI_VERSION 1u
#define TOPKNOT_BACKEND_ABI_SYMBOL "topknot_backend_abi"

// A fact that nobody stated.
#define TOPKNOT_UNKNOWN INT64_MIN

// What plan(), run() and create() return.
#define TOPKNOT_OK 0
#define TOPKNOT_FAILED 1       // for any other reason
#define TOPKNOT_NO_MEMORY 2    // host or device memory ran out
#define TOPKNOT_UNSUPPORTED 3  // understood, and not offered; better said by refusals()

// Where a backend computes, and the type T of queries and outputs.
#define TOPKNOT_HOST_F32 0u   // on host threads; all pointers are host memory; T is float
#define TOPKNOT_CUDA_BF16 1u  // on one CUDA device; all pointers are its memory; T is bfloat16

// Values of facts and arguments. Numbers are never reused.
#define TOPKNOT_DEVICE_CPU 0
#define TOPKNOT_DEVICE_CUDA 1
#define TOPKNOT_SELECTION_SPARSE 0  // rows that an indexer selected: topk_slots
#define TOPKNOT_SELECTION_DENSE 1   // the first `visible` positions of a sequence
// Rows of D elements, the rotated P last.
#define TOPKNOT_KV_F32 0
#define TOPKNOT_KV_BF16 1
// (D - P) x e4m3 | a float scale for each 128 of them | P x bfloat16. An element is e4m3 * scale.
#define TOPKNOT_KV_FP8_DS 2
// Blocks of 32 elements: float16 scale | 32 x int8. An element is int8 * scale.
#define TOPKNOT_KV_Q8_0 3
#define TOPKNOT_KV_F16 4
#define TOPKNOT_KV_FP8_E4M3 5

// What is asked of a backend; each is TOPKNOT_UNKNOWN where nobody stated it.
typedef struct TopknotAttentionFacts {
  uint64_t struct_bytes;
  int64_t device;            // TOPKNOT_DEVICE_CPU, TOPKNOT_DEVICE_CUDA
  int64_t sm;                // compute capability, 9.0 is 90; not ordered by ability
  int64_t smem_per_block;    // bytes of shared memory, opt-in limit
  int64_t selection;         // TOPKNOT_SELECTION_SPARSE, TOPKNOT_SELECTION_DENSE
  int64_t heads;             // H: query heads on this rank
  int64_t kv_lora_rank;      // R
  int64_t qk_rope_head_dim;  // P; may be 0
  int64_t qk_nope_head_dim;  // already folded into q
  int64_t head_size;         // D, the width of a cached row
  int64_t topk;              // keys that a query reads at most; unknown when dense
  int64_t kv_format;         // TOPKNOT_KV_...
  int64_t page;              // tokens of a page
  int64_t tensor_ranks;      // ranks that share the heads; 1: not split
} TopknotAttentionFacts;

// A limit that what is asked does not meet. Copied before the callback returns; a null text is an
// empty one. Say all that refuse, not only the first.
typedef struct TopknotRefusal {
  const char* what;     // the fact's name, as above: "heads"
  const char* needed;   // "a multiple of 16"
  const char* found;    // "17"
  const char* because;  // the reason in the code: "a tile has 16 heads"
  const char* remedy;   // what the user can do: "--kv-cache-dtype bf16"; may be empty
} TopknotRefusal;
typedef void (*TopknotRefuse)(void* context, const TopknotRefusal* refusal);

// The caller zeroes it. Texts are read up to their zero, or their end.
typedef struct TopknotError {
  uint64_t struct_bytes;
  char what[256];  // the thing that failed
  char why[512];   // needed and found
  char fix[256];   // what the user can do
} TopknotError;

typedef struct TopknotShape {
  uint64_t struct_bytes;
  int64_t heads;
  int64_t kv_lora_rank;
  int64_t qk_rope_head_dim;
} TopknotShape;

// `thread` is in [0, threads).
typedef void (*TopknotBody)(void* context, int64_t item, int32_t thread);

// What a backend runs on; valid until destroy().
typedef struct TopknotResources {
  uint64_t struct_bytes;
  int32_t threads;      // TOPKNOT_HOST_F32: of parallel_for, the caller among them
  int32_t cuda_device;  // TOPKNOT_CUDA_BF16: the CUDA device's index
  void* pool;           // first argument of parallel_for
  // TOPKNOT_HOST_F32: calls body(context, item, thread) once for each item in [0, items) and
  // returns when all are done. Not reentrant; only from within plan() and run().
  void (*parallel_for)(void* pool, int64_t items, TopknotBody body, void* context);
} TopknotResources;

// The calls of run() that follow have these numbers in common: one for each layer of a step.
typedef struct TopknotBatch {
  uint64_t struct_bytes;
  int32_t selection;    // TOPKNOT_SELECTION_...
  int32_t reserved;     // 0
  int64_t tokens;       // at least 1
  int64_t topk;         // sparse: the width of topk_slots
  int64_t max_visible;  // dense: no token reads more keys
} TopknotBatch;

// Arrays are row-major, the innermost index contiguous, 16-byte aligned, and do not overlap.
typedef struct TopknotRunArgs {
  uint64_t struct_bytes;
  int64_t tokens;     // as planned
  int32_t selection;  // as planned
  int32_t kv_format;  // TOPKNOT_KV_...
  // T [tokens, H, D]: the first R already multiplied by the key up-projection, RoPE on the last P.
  const void* q;
  // Row s begins at kv_rows + s * row_bytes, one for each slot, shared by all heads. Rows that are
  // not selected may hold anything, NaN too.
  const void* kv_rows;
  int64_t row_bytes;
  int64_t width;  // D, elements of a row
  int64_t tail;   // P, the rotated ones, last
  int64_t slots;  // rows there are; slot = page * page_tokens + offset
  // Sparse, else null: i32 [tokens, topk], slots; -1 is none, at any position.
  const int32_t* topk_slots;
  int64_t topk;
  // Dense, else null: the key at position p of token t is in slot
  //   block_table[requests[t] * max_pages + p / page_tokens] * page_tokens + p % page_tokens
  // for p in [0, visible[t]).
  const int32_t* block_table;  // i32 [requests, max_pages]: page ids
  int64_t max_pages;
  const int32_t* requests;  // i32 [tokens]: row of block_table
  const int32_t* visible;   // i32 [tokens]: how many keys are read; may be 0
  int64_t page_tokens;
  float sm_scale;  // of the logits; not 1/sqrt(D) in general
  int32_t reserved;
  // T [tokens, H, R], written whole: zeros where a token reads nothing.
  void* out;
  // f32 [tokens, H] or null: natural logarithm; minus infinity where a token reads nothing.
  float* lse;
  // TOPKNOT_CUDA_BF16: the cudaStream_t to enqueue on, without synchronising or allocating; a
  // graph may be captured. Null on the host.
  void* stream;
} TopknotRunArgs;

typedef struct TopknotBackendAbi {
  uint32_t abi_version;     // TOPKNOT_BACKEND_ABI_VERSION
  uint32_t memory;          // TOPKNOT_HOST_F32, TOPKNOT_CUDA_BF16
  uint64_t table_bytes;     // sizeof(TopknotBackendAbi)
  const char* name;         // of lower case letters, digits and _ - . ; at most 64
  const char* description;  // one line, for `topknot backends`

  // Calls refuse(context, ...) for each limit that `facts` do not meet; none means that create()
  // and run() work. That the device is of another kind than `memory` says is refused without it.
  void (*refusals)(const TopknotAttentionFacts* facts, TopknotRefuse refuse, void* context);

  // Scratch that create() takes for so many host threads, in bytes: host memory, or the device's.
  int64_t (*workspace_bytes)(const TopknotShape* shape, int32_t threads);

  // Makes *backend, which the caller gives to destroy(). After an error *backend is not looked at.
  int32_t (*create)(const TopknotShape* shape, const TopknotResources* resources, void** backend,
                    TopknotError* error);

  // Host work of a step, before its first run(). After an error run() is not called.
  int32_t (*plan)(void* backend, const TopknotBatch* batch, TopknotError* error);

  // The result must not depend on `threads`, nor on the other tokens of the batch.
  int32_t (*run)(void* backend, const TopknotRunArgs* args, TopknotError* error);

  void (*destroy)(void* backend);
} TopknotBackendAbi;

#if defined(_WIN32)
#define TOPKNOT_BACKEND_EXPORT __declspec(dllexport)
#else
#define TOPKNOT_BACKEND_EXPORT __attribute__((visibility("default")))
#endif

// What a library defines. The table is the library's, constant, and valid as long as it is loaded.
// `host_version` is the TOPKNOT_BACKEND_ABI_VERSION of the program that asks: a library that offers
// several versions returns the table of that one.
TOPKNOT_BACKEND_EXPORT const TopknotBackendAbi* topknot_backend_abi(uint32_t host_version);

#ifdef __cplusplus
}
#endif
