// Sparse MLA over raw pointers: the attention of one layer, without a model, a cache or an engine.
//
//   auto decode = topknot::SparseMlaDecode::create({.heads = 64, .topk = 2048});
//   auto done = decode->run({.q = q, .kv_rows = rows, .slots = 65536, .topk_slots = slots,
//                            .out = out, .tokens = 1, .sm_scale = 0.0625f});
//
// Absorbed (MQA) form: out = softmax(q . row^T * sm_scale) . row[:R], over the selected rows of
// each token. Each token has its own selection, so several tokens of a prompt are run alike.
//   H heads   R kv_lora_rank   P qk_rope_head_dim   D = R + P   K topk
//
// **Host memory only, in this version**: the one device is "cpu", and run() returns when the result
// is there. On a GPU the same calls will take device memory, 16-byte aligned, and a stream.
// Source: DeepSeek-V2 (arXiv:2405.04434) sec. 2.1; DeepSeek-V3.2 (DSA). Oracle: the backend
// cpu_reference, scalar with double sums.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "topknot/error.h"
#include "topknot/export.h"

namespace topknot {

inline constexpr int64_t kMaxMlaHeads = 1 << 16;
inline constexpr int64_t kMaxMlaWidth = 1 << 16;              // of R and of P
inline constexpr int64_t kMaxMlaTokens = 1 << 24;             // of one run
inline constexpr int64_t kMaxMlaTopk = int64_t{1} << 24;      // K
inline constexpr int64_t kMaxMlaSlots = int64_t{1} << 31;     // a slot is an int32_t
inline constexpr int64_t kMaxMlaElements = int64_t{1} << 40;  // of q, of out

enum class ElementType : uint8_t { kF32, kBf16 };

// What stays the same from run to run.
struct SparseMlaShape {
  int64_t heads = 0;                                // H: query heads of this process
  int64_t kv_lora_rank = 512;                       // R
  int64_t qk_rope_head_dim = 64;                    // P
  int64_t topk = 0;                                 // K
  ElementType activation_type = ElementType::kF32;  // of q and out; on a cpu f32 only
  ElementType kv_row_type = ElementType::kBf16;     // of kv_rows
};

struct SparseMlaOptions {
  std::string device = "cpu";
  std::string attention_backend;  // a name of `topknot backends`; empty: the first that can
  int threads = 0;                // of a cpu; 0: every core this process may use
};

// Row-major, innermost contiguous; not owned; not null unless said; aligned to an element; out and
// lse overlap nothing else.
struct SparseMlaDecodeArgs {
  // [tokens, H, D]; the first R already multiplied by W_UK, RoPE applied to the last P.
  const void* q = nullptr;
  // [slots, D]: one latent row for each slot, shared by all heads.
  const void* kv_rows = nullptr;
  int64_t slots = 0;
  // [tokens, K]: rows of kv_rows, in any order; -1 is an empty entry, at any position.
  const int32_t* topk_slots = nullptr;
  // [tokens, H, R]; zeros where every entry is empty.
  void* out = nullptr;
  // [tokens, H]: logarithm (natural) of the softmax's sum; -inf where every entry is empty; or
  // null.
  float* lse = nullptr;
  int64_t tokens = 0;  // 0: nothing is done
  // 1/sqrt(qk_nope_head_dim + qk_rope_head_dim), times mscale^2 under YaRN; not 1/sqrt(D).
  float sm_scale = 0;
  // Of a GPU, a cudaStream_t; null for a cpu.
  void* stream = nullptr;
};

// Not copied; one that was moved from may only be assigned to or destroyed. One thread at a time.
// The scratch of a run is taken by create().
class TOPKNOT_API SparseMlaDecode {
 public:
  //   kOutOfRange   a size below 1 or above its limit, more threads than the limit
  //   kNotFound     no such device or backend
  //   kUnsupported  no backend takes this, or the one named does not: every candidate's reasons
  //   kResource     memory
  static Result<SparseMlaDecode> create(const SparseMlaShape& shape,
                                        const SparseMlaOptions& options = {});
  SparseMlaDecode(SparseMlaDecode&&) noexcept;
  SparseMlaDecode& operator=(SparseMlaDecode&&) noexcept;
  ~SparseMlaDecode();

  const std::string& attention_backend() const;

  // Checks every argument, entries of topk_slots too, before anything is written. That each array
  // is as large as said is the caller's promise.
  //   kInvalidArgument  a null or misaligned pointer, arrays that overlap, a stream on a cpu, an
  //                     sm_scale that is not a positive number
  //   kOutOfRange       a negative or too large size; an entry of topk_slots that is neither -1 nor
  //                     a slot (named)
  // The same arguments give the same bits, whatever `threads` and the other tokens.
  Status run(const SparseMlaDecodeArgs& args);

 private:
  struct State;
  explicit SparseMlaDecode(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace topknot
