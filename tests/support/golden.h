// The goldens of tests/data/golden as plain structs. What each array means, how it was made and how
// far results may differ: the README.md there. Loading checks every shape, so a test that has a
// struct may index it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topknot/error.h"

namespace topknot::test {

// Absolute path of a file under tests/data, and of the bundled model.
std::string data_path(std::string_view relative);  // data_path("models/micro-glm-dsa-bf16.gguf")
std::string bundled_model_path();

// A matrix of floats [rows, columns], row-major.
struct Matrix {
  size_t rows = 0, columns = 0;
  std::vector<float> values;
  std::span<const float> row(size_t r) const { return {values.data() + r * columns, columns}; }
};

// Which keys each query attends: bit t of row s, little-endian within a byte.
struct SelectedSets {
  size_t rows = 0, row_bytes = 0;
  std::vector<uint8_t> bits;
  bool contains(size_t query, size_t key) const {
    return (bits[query * row_bytes + key / 8] >> (key % 8)) & 1;
  }
  std::vector<int32_t> keys(size_t query) const;  // ascending
};

// --- tiny-glm-dsa: Hugging Face transformers, float32
// ---------------------------------------------

struct Prompt {
  std::string name;          // "chat-facts"
  std::string text;          // empty for the long ones
  std::string continuation;  // of the Q8_0 model; empty for other files
  std::vector<int32_t> ids;
  std::vector<float> last_logits;        // [vocabulary], of the last position
  std::vector<int32_t> top10_positions;  // [n]: all, or the last 64 of a long prompt
  std::vector<int32_t> top10_ids;        // [n, 10], best first
  std::vector<float> top10_logprobs;     // [n, 10]
  std::vector<int32_t> greedy;           // 64 ids, not stopped at the end of the turn
  std::vector<float> greedy_margin;      // first minus second logit at each step
};
// In the order of prompts.json. `quant`: "tiny-glm-dsa-q4_k_m" or "tiny-glm-dsa-mixed" for what the
// reference gives with that file's weights.
Result<std::vector<Prompt>> load_prompts();
Result<std::vector<Prompt>> load_quant_prompts(std::string_view quant);

struct LayerStates {  // each [tokens, width]; layers.npz
  Matrix attn_norm, q_latent, kv_latent, attn_out, ffn_norm, ffn_out, out;
  std::vector<int32_t> experts;       // [tokens, used], ascending; empty for a dense layer
  std::vector<float> expert_weights;  // the same order, scaled
};
struct LayersGolden {
  std::vector<int32_t> ids;
  Matrix embed, logits;
  std::vector<LayerStates> layers;
};
Result<LayersGolden> load_layers();

struct IndexerLayer {
  SelectedSets selected;
  std::vector<float> margin;         // [tokens]: 256th minus 257th score, inf below row 256
  std::vector<float> scores_last;    // [tokens], of the last row
  std::vector<float> scores_row400;  // [401]
};
struct IndexerGolden {
  std::vector<int32_t> ids;
  std::vector<IndexerLayer> layers;
};
Result<IndexerGolden> load_indexer();

struct PerplexitySequence {
  std::string name;                            // "kjv-2k"
  std::vector<int32_t> ids;                    // [n + 1]
  std::vector<float> nll_sparse, nll_dense;    // [n], natural log, of ids[1:]
  double perplexity_sparse, perplexity_dense;  // exp of their means, computed here
};
Result<std::vector<PerplexitySequence>> load_perplexity();

struct RecallSequence {
  std::string name;  // "4096-0"
  std::vector<int32_t> ids;
  // Right if the argmax at index i - 1 is ids[i] for each i in [first, end).
  struct Answer {
    int32_t first, end;
    bool correct_sparse;
  };
  std::vector<Answer> answers;
};
Result<std::vector<RecallSequence>> load_recall();

struct TokenizerCase {
  std::string text;
  std::vector<int32_t> ids;
  std::string decoded;  // empty in special_as_text
};
struct TokenizerCases {
  std::vector<TokenizerCase> parsed;           // special tokens parsed
  std::vector<TokenizerCase> special_as_text;  // tokens of type control are plain text
};
Result<TokenizerCases> load_tokenizer_cases();

struct ChatCase {
  std::string messages, tools, kwargs;  // JSON text; "null" where there are none
  std::string rendered;
  std::vector<int32_t> ids;
};
struct ChatCases {
  std::string chat_template;
  std::vector<ChatCase> cases;
};
Result<ChatCases> load_chat_cases();

// --- random models
// ---------------------------------------------------------------------------------

// transformers in float32. Exact ties at the cut of the indexer are decided by torch.topk's own
// order, so rows from the first tie on may differ from an engine that takes the lower index
// (README.md).
struct MicroGolden {
  std::vector<int32_t> ids;    // [96]
  Matrix logits;               // [96, 512]
  std::vector<Matrix> hidden;  // [layers + 1] of [96, 64]: embedding, after each layer; the last
                               // one after the final norm
};
Result<MicroGolden> load_micro(std::string_view name);  // "micro-glm-dsa"

// tools/reference_dsa.py in float64, ties decided for the lower index.
struct ReferenceLayer {
  bool full = true;       // has its own indexer; otherwise `selected` is the last full layer's
  SelectedSets selected;  // [tokens]
  Matrix attn_out, out;   // [tokens, hidden]: after the output projection; residual after the layer
  // Of a full layer only:
  Matrix scores;               // [tokens, tokens], -inf above the diagonal
  std::vector<double> margin;  // [tokens]; inf where every visible key is chosen
  std::vector<uint8_t> tied;   // [tokens]: 1 where equal scores straddle the cut
};
struct ReferenceGolden {
  std::vector<int32_t> ids;
  int32_t top_k = 0;
  Matrix logits;  // [tokens, vocabulary]
  std::vector<ReferenceLayer> layers;
  // What mistakes give, at `wrong_rows` only: "wrong_flavour", "wrong_slice", "wrong_scale",
  // "wrong_main_flavour", "wrong_own_indexer" (shared-k4 only), and "dense".
  std::vector<int32_t> wrong_rows;
  std::map<std::string, Matrix, std::less<>> wrong;
};
Result<ReferenceGolden> load_reference(std::string_view name);  // "interleaved-k4"

}  // namespace topknot::test
