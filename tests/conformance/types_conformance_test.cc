// A whole model in each weight type: the forward pass on blocks gives the same logits, to the last
// bit, as on a copy of the model whose weights were decoded to fp32 beforehand.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "gguf/writer.h"
#include "golden/compare.h"
#include "support/model_runner.h"
#include "synth/synth.h"
#include "tensor/dequantize.h"

namespace topknot::test {
namespace {

namespace fs = std::filesystem;
using tensor::DType;

// Rows of whole blocks of 256 but for attn_k_b, where synth falls back to a type that fits; more
// tokens than the top-k, so that the indexer chooses.
synth::ModelShape small_shape() {
  synth::ModelShape s;
  s.layers = 2;
  s.vocab = 300;
  s.heads = 2;
  s.q_lora = s.kv_lora = 256;
  s.qk_nope = 64;
  s.qk_rope = 32;
  s.v_head = 128;
  s.dense_ffn = 256;
  s.experts = 4;
  s.index_topk = 16;
  s.index_heads = 2;
  return s;
}
constexpr int32_t kTokens = 40;

class EveryType : public testing::TestWithParam<DType> {
 protected:
  EveryType() {
    std::string pattern = (fs::temp_directory_path() / "topknot_types_XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
  }
  ~EveryType() override { fs::remove_all(directory_); }

  std::string random_model() const {
    synth::Request request;
    request.shape = small_shape();
    request.types = {must(synth::TypeRule::parse(tensor::dtype_name(GetParam())))};
    request.path = (directory_ / "blocks").string();
    request.quiet = true;
    return must(synth::make_model(request)).parts.front().path;
  }

  // The same metadata, every tensor F32.
  std::string decoded_copy(const std::string& path) const {
    const auto file = must(gguf::ModelFile::open(path));
    gguf::Writer writer;
    for (const gguf::KeyValue& each : file.metadata()) writer.add_value(each.key, each.value);
    std::vector<std::vector<float>> values;
    for (const gguf::TensorInfo& tensor : file.tensors()) {
      std::vector<float>& decoded = values.emplace_back(tensor.elements());
      tensor::dequantize_row(tensor.type, tensor.data, decoded.size(), decoded.data());
      writer.add_tensor(tensor.name, DType::kF32, std::span(tensor.ne).first(tensor.dims),
                        std::as_bytes(std::span(decoded)));
    }
    const std::string copy = (directory_ / "decoded.gguf").string();
    EXPECT_TRUE(writer.write(copy));
    return copy;
  }

  fs::path directory_;
};

Matrix logits_of(const std::string& path, const RunnerOptions& options) {
  const auto runner = open_model(path, options);
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < kTokens; ++i) ids.push_back(i * 7 % 256);
  Matrix logits = runner->feed_all(ids);
  EXPECT_GT(runner->stats().sparse_queries, 0);
  return logits;
}

size_t tensors_of(const std::string& path, DType type) {
  const auto file = must(gguf::ModelFile::open(path));
  return static_cast<size_t>(std::count_if(file.tensors().begin(), file.tensors().end(),
                                           [&](const auto& each) { return each.type == type; }));
}

TEST_P(EveryType, ForwardOnBlocksEqualsForwardOnDecodedWeights) {
  const std::string blocks = random_model();
  const std::string decoded = decoded_copy(blocks);
  // All matrices of two layers but router, index head weights and attn_k_b.
  EXPECT_GE(tensors_of(blocks, GetParam()), 23U);
  EXPECT_EQ(tensors_of(decoded, DType::kF32), must(gguf::ModelFile::open(blocks)).tensors().size());
  for (const RunnerOptions& path : {fast_path(), reference_path()}) {
    const Matrix got = logits_of(blocks, path);
    const Matrix want = logits_of(decoded, path);
    ASSERT_EQ(got.rows, size_t{kTokens});
    ASSERT_EQ(got.values.size(), want.values.size());
    for (size_t i = 0; i < got.values.size(); ++i) {
      ASSERT_TRUE(std::isfinite(want.values[i]));
      ASSERT_EQ(std::bit_cast<uint32_t>(got.values[i]), std::bit_cast<uint32_t>(want.values[i]))
          << path.kernels << " at " << i << ": " << got.values[i] << " vs " << want.values[i];
    }
  }
}

std::vector<DType> weight_types() {
  std::vector<DType> out;
  for (const tensor::DTypeInfo& info : tensor::dtypes()) {
    if (info.decoded) out.push_back(info.type);
  }
  return out;
}
INSTANTIATE_TEST_SUITE_P(Types, EveryType, testing::ValuesIn(weight_types()), [](const auto& each) {
  return std::string(tensor::dtype_name(each.param));
});

}  // namespace
}  // namespace topknot::test
