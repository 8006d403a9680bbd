// The tensors of a model under the names of the papers, as they lie in the mapped file.
#pragma once

#include <vector>

#include "gguf/model_file.h"
#include "model/config.h"
#include "tensor/weight.h"

namespace topknot::model {

using tensor::Weight;

// Members that do not apply to a layer stay empty. Norms and biases are widened to fp32.
struct LayerWeights {
  std::vector<float> attn_norm, ffn_norm;

  Weight q_a, q_b;  // with q_lora_rank
  std::vector<float> q_a_norm;
  Weight q;     // without
  Weight kv_a;  // [R + P, D]: latent rows first
  std::vector<float> kv_a_norm;
  Weight k_b;  // H matrices [R, N]: W_UK transposed, as files with attn_k_b keep it
  Weight
      k_b_rows;  // H matrices [N, R]: W_UK as a fused attn_kv_b keeps it; one of the two is there
  Weight v_b;    // H matrices [V, R]: W_UV
  Weight attn_out;

  Weight index_q_b, index_k, index_weights;  // layers with their own indexer
  std::vector<float> index_k_norm, index_k_norm_bias;

  Weight ffn_gate, ffn_up, ffn_down;  // dense layers
  Weight router;
  std::vector<float> router_bias;
  Weight gate_exps, up_exps, down_exps;        // E matrices
  Weight gate_shared, up_shared, down_shared;  // when there are shared experts
};

struct Weights {
  Weight token_embd;  // [V, D]
  std::vector<float> output_norm;
  Weight output;  // token_embd when the file has none
  std::vector<LayerWeights> layers;
};

// What is computed with a tensor.
enum class Use : uint8_t {
  kVector,     // norms and biases, widened to fp32
  kEmbedding,  // rows by token id
  kLinear,
  kScoring,     // a linear layer that is run only when the indexer scores keys
  kRouter,      // a linear layer whose result chooses experts
  kHeads,       // one matrix for each head
  kFusedHeads,  // attn_kv_b: its W_UK transposed for each head, its W_UV as it is
  kExperts,     // one matrix for each expert
};

// How tensor-parallel ranks divide a tensor. What is not divided is on every rank.
enum class Split : uint8_t {
  kWhole,
  kVocabRows,
  kHeadRows,     // ne[1], by heads
  kHeadColumns,  // ne[0], by heads
  kHeads,        // ne[2]
  kFfnRows,      // ne[1] (twice the width when gate and up are fused)
  kFfnColumns,   // ne[0]
};

struct UsedTensor {
  const gguf::TensorInfo* info = nullptr;
  int64_t layer = -1;  // -1: of no layer
  Use use = Use::kLinear;
  Split split = Split::kWhole;
};

// The tensors a model computes with; nothing but their descriptions was read.
struct CheckedTensors {
  std::vector<UsedTensor> tensors;
  int64_t vocab = 0;               // rows of token_embd
  bool tied_output = false;        // token_embd is the output matrix, too
  std::vector<std::string> notes;  // what was left out, and defaults used
};

// Finds every tensor by its exact name and shape; all that are missing or of another shape are
// reported in one Error. Reads no tensor data. A type that cannot be decoded is no error here; a
// scale in a tensor of its own (`.scale` beside `.weight`, some NVFP4 files) is kUnsupported.
Result<CheckedTensors> check_tensors(const gguf::ModelFile& file, const ModelConfig& config);

// Types that no product can read, with every tensor that has one and its file, as one Error.
Status check_types(const gguf::ModelFile& file, const CheckedTensors& tensors);

struct BoundWeights {
  Weights weights;
  int64_t vocab = 0;               // rows of token_embd
  std::vector<std::string> notes;  // what was left out, and defaults used
};

// Binds every tensor by its exact name and shape. All missing tensors, wrong shapes and types that
// cannot be decoded are reported in one Error. The MTP block behind the main layers is left out.
Result<BoundWeights> bind_weights(const gguf::ModelFile& file, const ModelConfig& config);

}  // namespace topknot::model
