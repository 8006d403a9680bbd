// A small glm-dsa file for tests of this folder: every key and tensor is there and right, until a
// test changes one.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/model_file.h"
#include "gguf/writer.h"
#include "model/config.h"

namespace topknot::model {

class TestFile {
 public:
  // Two layers, the first dense, the second with 4 experts; an indexer in both.
  TestFile() {
    add_string("general.architecture", "glm-dsa");
    const std::pair<const char*, uint32_t> numbers[] = {{"block_count", 2},
                                                        {"context_length", 4096},
                                                        {"embedding_length", 32},
                                                        {"vocab_size", 40},
                                                        {"feed_forward_length", 64},
                                                        {"leading_dense_block_count", 1},
                                                        {"expert_count", 4},
                                                        {"expert_used_count", 2},
                                                        {"expert_feed_forward_length", 48},
                                                        {"expert_shared_count", 1},
                                                        {"attention.head_count", 2},
                                                        {"attention.q_lora_rank", 24},
                                                        {"attention.kv_lora_rank", 36},
                                                        {"attention.key_length_mla", 24},
                                                        {"attention.value_length_mla", 20},
                                                        {"rope.dimension_count", 8},
                                                        {"attention.indexer.head_count", 3},
                                                        {"attention.indexer.key_length", 28},
                                                        {"attention.indexer.top_k", 4}};
    for (const auto& [key, value] : numbers) add(key, value);
    add("attention.layer_norm_rms_epsilon", 1e-5f);
    add("rope.freq_base", 1e6f);
    add("expert_weights_norm", true);
    const std::pair<const char*, std::vector<uint64_t>> tensors[] = {
        {"token_embd.weight", {32, 40}},
        {"output_norm.weight", {32}},
        {"output.weight", {32, 40}},
        {"blk.0.ffn_gate.weight", {32, 64}},
        {"blk.0.ffn_up.weight", {32, 64}},
        {"blk.0.ffn_down.weight", {64, 32}},
        {"blk.1.ffn_gate_inp.weight", {32, 4}},
        {"blk.1.exp_probs_b.bias", {4}},
        {"blk.1.ffn_gate_exps.weight", {32, 48, 4}},
        {"blk.1.ffn_up_exps.weight", {32, 48, 4}},
        {"blk.1.ffn_down_exps.weight", {48, 32, 4}},
        {"blk.1.ffn_gate_shexp.weight", {32, 48}},
        {"blk.1.ffn_up_shexp.weight", {32, 48}},
        {"blk.1.ffn_down_shexp.weight", {48, 32}}};
    for (const auto& [name, ne] : tensors) set_tensor(name, ne);
    for (const char* block : {"blk.0.", "blk.1."}) add_attention(block);
  }

  // A key of the architecture; its C++ type is the file's.
  template <class T>
  void add(const std::string& key, T value) {
    keys_["glm-dsa." + key] = [value](gguf::Writer* w, const std::string& k) { w->add(k, value); };
  }
  template <class T>
  void add_array(const std::string& key, std::vector<T> values) {
    keys_["glm-dsa." + key] = [values](gguf::Writer* w, const std::string& k) {
      w->add_array<T>(k, values);
    };
  }
  void add_flags(const std::string& key, std::vector<uint8_t> flags) {
    keys_["glm-dsa." + key] = [flags](gguf::Writer* w, const std::string& k) {
      w->add_value(k, gguf::Value(gguf::ValueType::kArray,
                                  gguf::Array{.element_type = gguf::ValueType::kBool,
                                              .count = flags.size(),
                                              .bytes = std::as_bytes(std::span(flags))}));
    };
  }
  void add_strings(const std::string& key, std::vector<std::string> texts) {
    keys_["glm-dsa." + key] = [texts](gguf::Writer* w, const std::string& k) {
      w->add_strings(k, texts);
    };
  }
  void add_string(const std::string& full_key, const std::string& text) {
    keys_[full_key] = [text](gguf::Writer* w, const std::string& k) { w->add_string(k, text); };
  }
  void drop(const std::string& key) { ASSERT_EQ(keys_.erase("glm-dsa." + key), 1U) << key; }

  void set_tensor(const std::string& name, std::vector<uint64_t> ne,
                  tensor::DType type = tensor::DType::kF32) {
    tensors_[name] = {std::move(ne), type};
  }
  void drop_tensor(const std::string& name) { ASSERT_EQ(tensors_.erase(name), 1U) << name; }

  gguf::ModelFile open() {
    gguf::Writer writer;
    for (const auto& [key, write] : keys_) write(&writer, key);
    for (const auto& [name, tensor] : tensors_) {
      uint64_t rows = 1;
      for (size_t i = 1; i < tensor.ne.size(); ++i) rows *= tensor.ne[i];
      const std::span<const std::byte> data(zeros_);
      writer.add_tensor(name, tensor.type, tensor.ne,
                        data.first(rows * tensor::row_bytes(tensor.type, tensor.ne[0])));
    }
    bytes_ = writer.to_bytes();
    auto file = gguf::ModelFile::from_memory(bytes_, "test.gguf");
    EXPECT_TRUE(file) << file.error().to_string();
    return std::move(file).value();
  }

 private:
  struct Tensor {
    std::vector<uint64_t> ne;
    tensor::DType type = tensor::DType::kF32;
  };

  void add_attention(const std::string& block) {
    const std::pair<const char*, std::vector<uint64_t>> tensors[] = {
        {"attn_norm.weight", {32}},
        {"attn_q_a.weight", {32, 24}},
        {"attn_q_a_norm.weight", {24}},
        {"attn_q_b.weight", {24, 48}},
        {"attn_kv_a_mqa.weight", {32, 44}},
        {"attn_kv_a_norm.weight", {36}},
        {"attn_k_b.weight", {16, 36, 2}},
        {"attn_v_b.weight", {36, 20, 2}},
        {"attn_output.weight", {40, 32}},
        {"indexer.attn_q_b.weight", {24, 84}},
        {"indexer.attn_k.weight", {32, 28}},
        {"indexer.k_norm.weight", {28}},
        {"indexer.k_norm.bias", {28}},
        {"indexer.proj.weight", {32, 3}},
        {"ffn_norm.weight", {32}}};
    for (const auto& [name, ne] : tensors) set_tensor(block + name, ne);
  }

  std::map<std::string, std::function<void(gguf::Writer*, const std::string&)>> keys_;
  std::map<std::string, Tensor> tensors_;
  std::vector<std::byte> zeros_ = std::vector<std::byte>(1 << 16);
  std::vector<std::byte> bytes_;
};

inline std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  return all;
}

}  // namespace topknot::model
