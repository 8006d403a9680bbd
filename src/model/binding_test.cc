#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/test_support.h"
#include "model/weights.h"

namespace topknot::model {
namespace {

using testing::HasSubstr;
using testing::Not;

// The file must outlive what was bound: weights lie in it.
struct Bound {
  std::unique_ptr<TestFile> file;
  std::unique_ptr<gguf::ModelFile> model;
  Result<BoundWeights> weights = Error{};

  explicit Bound(TestFile source) : file(std::make_unique<TestFile>(std::move(source))) {
    model = std::make_unique<gguf::ModelFile>(file->open());
    auto config = read_config(*model);
    EXPECT_TRUE(config) << config.error().to_string();
    if (config) weights = bind_weights(*model, *config);
  }
  const BoundWeights& get() const {
    EXPECT_TRUE(weights) << weights.error().to_string();
    return *weights;
  }
  Error error() const {
    EXPECT_FALSE(weights) << "bound";
    return weights ? Error{} : weights.error();
  }
};

TEST(Binding, BindsEveryTensor) {
  const Bound bound({});
  const BoundWeights& b = bound.get();
  EXPECT_EQ(b.vocab, 40);
  EXPECT_TRUE(b.notes.empty()) << joined(b.notes);
  ASSERT_EQ(b.weights.layers.size(), 2U);
  const LayerWeights& dense = b.weights.layers[0];
  const LayerWeights& moe = b.weights.layers[1];
  EXPECT_EQ(dense.k_b.in, 16);
  EXPECT_EQ(dense.k_b.out, 36);
  EXPECT_EQ(dense.k_b.count, 2);
  EXPECT_EQ(dense.index_q_b.out, 84);
  EXPECT_EQ(dense.index_k_norm_bias.size(), 28U);
  EXPECT_FALSE(dense.ffn_gate.empty());
  EXPECT_TRUE(dense.gate_exps.empty());
  EXPECT_TRUE(moe.ffn_gate.empty());
  EXPECT_EQ(moe.router_bias.size(), 4U);
  EXPECT_EQ(moe.down_exps.count, 4);
}

TEST(Binding, MissingTensorsAreNamedAllAtOnce) {
  TestFile file;
  const char* names[] = {"token_embd.weight",        "output_norm.weight",
                         "blk.0.attn_q_b.weight",    "blk.0.indexer.k_norm.bias",
                         "blk.1.attn_v_b.weight",    "blk.1.exp_probs_b.bias",
                         "blk.1.ffn_up_exps.weight", "blk.1.ffn_down_shexp.weight"};
  for (const char* name : names) file.drop_tensor(name);
  const Error error = Bound(file).error();
  EXPECT_EQ(error.code, Code::kCorrupt);
  EXPECT_EQ(error.where, "test.gguf");
  for (const char* name : names) {
    EXPECT_THAT(error.why, HasSubstr(std::string("'") + name + "' is missing"));
  }
  EXPECT_THAT(error.why, HasSubstr("'blk.1.attn_v_b.weight' is missing; needed: {36, 20, 2}"));
}

TEST(Binding, WrongShapesAreShown) {
  TestFile file;
  file.set_tensor("blk.0.attn_q_b.weight", {24, 47});
  file.set_tensor("blk.1.ffn_gate_exps.weight", {32, 48, 5});
  file.set_tensor("output_norm.weight", {32, 2});
  file.set_tensor("token_embd.weight", {32, 39});
  const std::string why = Bound(file).error().why;
  EXPECT_THAT(why, HasSubstr("'blk.0.attn_q_b.weight' has shape {24, 47}; needed: {24, 48}"));
  EXPECT_THAT(why, HasSubstr("{32, 48, 5}; needed: {32, 48, 4}"));
  EXPECT_THAT(why, HasSubstr("'output_norm.weight' has shape {32, 2}; needed: {32}"));
  EXPECT_THAT(why, HasSubstr("'token_embd.weight' has 39 rows; vocab_size is 40"));
}

TEST(Binding, TypesThatAreNotDecodedAreNamed) {
  TestFile file;
  file.set_tensor("blk.1.ffn_gate_exps.weight", {32, 48, 4}, tensor::DType::kQ8_1);
  file.set_tensor("output.weight", {32, 40}, tensor::DType::kI16);
  const Error error = Bound(file).error();
  EXPECT_EQ(error.code, Code::kUnsupported);
  EXPECT_THAT(error.why, HasSubstr("'blk.1.ffn_gate_exps.weight' has type Q8_1 (in test.gguf)"));
  EXPECT_THAT(error.why, HasSubstr("'output.weight' has type I16 (in test.gguf)"));
  file.drop_tensor("blk.0.attn_norm.weight");  // with another problem it is no matter of types
  EXPECT_EQ(Bound(file).error().code, Code::kCorrupt);
}

TEST(Binding, ScalesBesideWeightsAreRefused) {
  TestFile file;
  file.set_tensor("blk.1.ffn_up_exps.scale", {4}, tensor::DType::kF32);
  file.set_tensor("output.scale", {1}, tensor::DType::kF32);
  const Error error = Bound(file).error();
  EXPECT_EQ(error.code, Code::kUnsupported);
  EXPECT_THAT(error.why, HasSubstr("'blk.1.ffn_up_exps.scale' scales 'blk.1.ffn_up_exps.weight'"));
  EXPECT_THAT(error.why, HasSubstr("'output.scale' scales 'output.weight' (in test.gguf)"));
}

TEST(Binding, RouterBiasUnderEachOfItsNames) {
  for (const char* name : {"blk.1.exp_probs_b", "blk.1.exp_probs_b.weight"}) {
    TestFile file;
    file.drop_tensor("blk.1.exp_probs_b.bias");
    file.set_tensor(name, {4});
    const Bound bound(file);
    EXPECT_EQ(bound.get().weights.layers[1].router_bias.size(), 4U) << name;
    EXPECT_TRUE(bound.get().notes.empty());
  }
}

TEST(Binding, FusedGateAndUpAreTwoViews) {
  TestFile file;
  file.drop_tensor("blk.1.ffn_gate_exps.weight");
  file.drop_tensor("blk.1.ffn_up_exps.weight");
  file.set_tensor("blk.1.ffn_gate_up_exps.weight", {32, 96, 4});
  const Bound bound(file);
  const LayerWeights& w = bound.get().weights.layers[1];
  EXPECT_EQ(w.gate_exps.out, 48);
  EXPECT_EQ(w.up_exps.out, 48);
  EXPECT_EQ(w.up_exps.data - w.gate_exps.data, 48 * 32 * 4);
  EXPECT_EQ(w.gate_exps.matrix_stride, 96 * 32 * 4);
  EXPECT_EQ(w.up_exps.matrix_stride, 96 * 32 * 4);
  EXPECT_EQ(w.up_exps.count, 4);
}

TEST(Binding, FusedKvBIsTwoViews) {
  TestFile file;
  file.drop_tensor("blk.0.attn_k_b.weight");
  file.drop_tensor("blk.0.attn_v_b.weight");
  file.set_tensor("blk.0.attn_kv_b.weight", {36, 72});
  const Bound bound(file);
  const LayerWeights& w = bound.get().weights.layers[0];
  EXPECT_TRUE(w.k_b.empty());
  EXPECT_EQ(w.k_b_rows.out, 16);
  EXPECT_EQ(w.k_b_rows.count, 2);
  EXPECT_EQ(w.v_b.out, 20);
  EXPECT_EQ(w.v_b.data - w.k_b_rows.data, 16 * 36 * 4);
  EXPECT_EQ(w.v_b.matrix_stride, 36 * 36 * 4);
  EXPECT_FALSE(bound.get().weights.layers[1].k_b.empty());  // each layer as it comes
}

TEST(Binding, OutputMayBeTiedToTheEmbedding) {
  TestFile file;
  file.drop_tensor("output.weight");
  const Bound bound(file);
  EXPECT_EQ(bound.get().weights.output.data, bound.get().weights.token_embd.data);
  EXPECT_THAT(joined(bound.get().notes), HasSubstr("output.weight is absent"));
}

TEST(Binding, SharedLayersNeedNoIndexerTensors) {
  TestFile file;
  file.add_flags("attention.indexer.types", {1, 0});
  const Bound with(file);
  EXPECT_THAT(joined(with.get().notes), HasSubstr("5 indexer tensors of layers that run no"));
  for (const char* name :
       {"attn_q_b.weight", "attn_k.weight", "k_norm.weight", "k_norm.bias", "proj.weight"}) {
    file.drop_tensor(std::string("blk.1.indexer.") + name);
  }
  const Bound without(file);
  EXPECT_TRUE(without.get().notes.empty());
  EXPECT_TRUE(without.get().weights.layers[1].index_q_b.empty());
}

TEST(Binding, WhatIsNotUsedIsNoted) {
  TestFile file;
  file.add("block_count", uint32_t{3});
  file.add("nextn_predict_layers", uint32_t{1});
  file.set_tensor("blk.2.nextn.eh_proj.weight", {64, 32});
  file.set_tensor("blk.2.indexer.proj.weight", {32, 3});
  file.set_tensor("blk.0.indexer.weights_proj.weight", {32, 3});
  file.set_tensor("blk.0.attn_q_a.qweight", {32, 24});
  const Bound bound(file);
  const std::string notes = joined(bound.get().notes);
  EXPECT_THAT(notes, HasSubstr("the MTP block (2 tensors behind layer 1) is left out"));
  EXPECT_THAT(notes, HasSubstr("2 tensors are not used, the first is 'blk.0."));
  EXPECT_THAT(notes, Not(HasSubstr("run no indexer")));
}

}  // namespace
}  // namespace topknot::model
