// Multi-head latent attention in plain scalar C, as a library for --backend-library.
//
// Each query head of each token is one item of work: its scores, their softmax, and the weighted
// mean of the rows, summed in double and in the order of the rows, so that neither the threads nor
// the other tokens of a batch change a bit. Slow, and short enough to read in one go.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topknot/backend_abi.h"

enum { kQ8Block = 32, kQ8BlockBytes = 34 };

// What create() makes: the shape, the threads to use, and scratch for each of them.
typedef struct Backend {
  TopknotShape shape;
  TopknotResources resources;
  double* sums;  // [threads, R]
  float* rows;   // [threads, D], one row widened
} Backend;

// One run(), as its items see it.
typedef struct Work {
  const Backend* backend;
  const TopknotRunArgs* args;
} Work;

static int fail(TopknotError* error, int code, const char* what, const char* why) {
  snprintf(error->what, sizeof(error->what), "%s", what);
  snprintf(error->why, sizeof(error->why), "%s", why);
  return code;
}

static int64_t width_of(const TopknotShape* shape) {
  return shape->kv_lora_rank + shape->qk_rope_head_dim;
}

// A fact, its value in words, and whether it is one of those that the code below knows.
static void refusals(const TopknotAttentionFacts* facts, TopknotRefuse refuse, void* context) {
  if (facts->kv_format != TOPKNOT_KV_F32 && facts->kv_format != TOPKNOT_KV_BF16 &&
      facts->kv_format != TOPKNOT_KV_Q8_0) {
    // `found` is left out: the program knows what it asked for.
    const TopknotRefusal refusal = {.what = "kv_format",
                                    .needed = "one of f32, bf16, q8_0",
                                    .because = "rows of no other format are widened",
                                    .remedy = "--kv-cache-dtype bf16"};
    refuse(context, &refusal);
  }
}

static int64_t workspace_bytes(const TopknotShape* shape, int32_t threads) {
  const int64_t of_thread =
      shape->kv_lora_rank * (int64_t)sizeof(double) + width_of(shape) * (int64_t)sizeof(float);
  return threads * of_thread;
}

static void destroy(void* object) {
  Backend* backend = object;
  free(backend->sums);
  free(backend->rows);
  free(backend);
}

static int32_t create(const TopknotShape* shape, const TopknotResources* resources, void** object,
                      TopknotError* error) {
  Backend* backend = calloc(1, sizeof(*backend));
  if (backend == NULL) return fail(error, TOPKNOT_NO_MEMORY, "no memory for a backend", "");
  backend->shape = *shape;
  backend->resources = *resources;
  const size_t threads = (size_t)resources->threads;
  backend->sums = malloc(threads * (size_t)shape->kv_lora_rank * sizeof(double));
  backend->rows = malloc(threads * (size_t)width_of(shape) * sizeof(float));
  if (backend->sums == NULL || backend->rows == NULL) {
    destroy(backend);
    return fail(error, TOPKNOT_NO_MEMORY, "no memory for scratch", "malloc returned null");
  }
  *object = backend;
  return TOPKNOT_OK;
}

// Nothing to prepare: every item finds its own rows.
static int32_t plan(void* object, const TopknotBatch* batch, TopknotError* error) {
  (void)object;
  (void)batch;
  (void)error;
  return TOPKNOT_OK;
}

static float from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

// IEEE half to float: sign, exponent of 5 bits, fraction of 10.
static float from_half(uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const float fraction = (float)(half & 1023);
  float value;
  if (exponent == 31) {
    value = fraction == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    value = ldexpf(fraction, -24);
  } else {
    value = ldexpf(fraction + 1024, exponent - 25);
  }
  return (half & 0x8000) != 0 ? -value : value;
}

static void widen(const TopknotRunArgs* args, int64_t slot, float* out) {
  const unsigned char* row = (const unsigned char*)args->kv_rows + slot * args->row_bytes;
  for (int64_t i = 0; i < args->width; ++i) {
    if (args->kv_format == TOPKNOT_KV_F32) {
      memcpy(&out[i], row + 4 * i, sizeof(float));
    } else if (args->kv_format == TOPKNOT_KV_BF16) {
      uint16_t bits;
      memcpy(&bits, row + 2 * i, sizeof(bits));
      out[i] = from_bits((uint32_t)bits << 16);
    } else {
      const unsigned char* block = row + i / kQ8Block * kQ8BlockBytes;
      uint16_t scale;
      memcpy(&scale, block, sizeof(scale));
      out[i] = from_half(scale) * (float)(signed char)block[2 + i % kQ8Block];
    }
  }
}

// How many rows a token may read, and which slot the k-th is in; -1: none.
static int64_t count_of(const TopknotRunArgs* args, int64_t token) {
  return args->selection == TOPKNOT_SELECTION_SPARSE ? args->topk : args->visible[token];
}

static int64_t slot_of(const TopknotRunArgs* args, int64_t token, int64_t k) {
  if (args->selection == TOPKNOT_SELECTION_SPARSE) return args->topk_slots[token * args->topk + k];
  const int32_t* pages = args->block_table + args->requests[token] * args->max_pages;
  return pages[k / args->page_tokens] * args->page_tokens + k % args->page_tokens;
}

// One head of one token, in one pass: `largest` is the largest logit so far, and what was summed
// under a smaller one is scaled down when it grows.
static void attend(void* context, int64_t item, int32_t thread) {
  const Work* work = context;
  const TopknotRunArgs* args = work->args;
  const Backend* backend = work->backend;
  const int64_t heads = backend->shape.heads;
  const int64_t rank = backend->shape.kv_lora_rank;
  const int64_t token = item / heads;
  double* sum = backend->sums + thread * rank;
  float* row = backend->rows + thread * args->width;
  const float* q = (const float*)args->q + item * args->width;
  float* out = (float*)args->out + item * rank;
  double largest = -INFINITY;
  double total = 0;
  memset(sum, 0, (size_t)rank * sizeof(*sum));
  for (int64_t k = 0; k < count_of(args, token); ++k) {
    const int64_t slot = slot_of(args, token, k);
    if (slot < 0) continue;
    widen(args, slot, row);
    double logit = 0;
    for (int64_t i = 0; i < args->width; ++i) logit += (double)q[i] * (double)row[i];
    logit *= (double)args->sm_scale;
    if (logit > largest) {
      const double smaller = exp(largest - logit);  // 0 for the first row
      for (int64_t i = 0; i < rank; ++i) sum[i] *= smaller;
      total *= smaller;
      largest = logit;
    }
    const double weight = exp(logit - largest);
    for (int64_t i = 0; i < rank; ++i) sum[i] += weight * (double)row[i];
    total += weight;
  }
  for (int64_t i = 0; i < rank; ++i) out[i] = total > 0 ? (float)(sum[i] / total) : 0;
  if (args->lse != NULL) args->lse[item] = total > 0 ? (float)(largest + log(total)) : -INFINITY;
}

static int32_t run(void* object, const TopknotRunArgs* args, TopknotError* error) {
  (void)error;
  const Backend* backend = object;
  Work work = {backend, args};
  backend->resources.parallel_for(backend->resources.pool, args->tokens * backend->shape.heads,
                                  &attend, &work);
  return TOPKNOT_OK;
}

const TopknotBackendAbi* topknot_backend_abi(uint32_t host_version) {
  static const TopknotBackendAbi table = {
      .abi_version = TOPKNOT_BACKEND_ABI_VERSION,
      .memory = TOPKNOT_HOST_F32,
      .table_bytes = sizeof(TopknotBackendAbi),
      .name = "scalar_mla",
      .description = "plain C with double sums; an example of a backend library",
      .refusals = refusals,
      .workspace_bytes = workspace_bytes,
      .create = create,
      .plan = plan,
      .run = run,
      .destroy = destroy,
  };
  return host_version == TOPKNOT_BACKEND_ABI_VERSION ? &table : NULL;
}
