#include "topknot/gguf.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "gguf/model_file.h"
#include "gguf/test_support.h"
#include "support/golden.h"
#include "tensor/dequantize.h"

namespace topknot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A file with every value type and several tensor types, removed with the test.
class PartsGguf : public testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::path(testing::TempDir()) /
             ("parts-" +
              std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + ".gguf"))
                .string();
    const gguf::Bytes bytes = gguf::sample_model();
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    auto opened = GgufModel::open(path_);
    ASSERT_TRUE(opened) << opened.error().to_string();
    model_.emplace(std::move(*opened));
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::string path_;
  std::optional<GgufModel> model_;
};

TEST_F(PartsGguf, ValuesAreReadWhateverTheirWidth) {
  EXPECT_EQ(*model_->integer("t.u8"), 200);
  EXPECT_EQ(*model_->integer("t.i8"), -100);
  EXPECT_EQ(*model_->integer("t.i64"), -(int64_t{1} << 62));
  EXPECT_EQ(*model_->integer("t.bool"), 1);
  EXPECT_EQ(*model_->number("t.f32"), double{1e-5F});
  EXPECT_EQ(*model_->number("t.u64"), std::ldexp(1.0, 63));
  EXPECT_EQ(*model_->boolean("t.bool"), true);
  EXPECT_EQ(*model_->text("t.bytes"), std::string_view("a\0b\xFFz", 5));
  EXPECT_THAT(*model_->integers("t.i32s"), ElementsAre(1, -2, 3));
  EXPECT_THAT(*model_->numbers("t.i32s"), ElementsAre(1.0, -2.0, 3.0));
  EXPECT_THAT(*model_->texts("t.strings"), ElementsAre("one", "", std::string_view("t\0wo", 4)));
  EXPECT_TRUE(model_->has_key("t.u8"));
  EXPECT_FALSE(model_->has_key("t.u"));
  EXPECT_EQ(model_->keys().front().name, "general.architecture");
  EXPECT_EQ(model_->keys().front().type, "str");
  EXPECT_EQ(model_->keys().front().value, "glm-dsa");
}

TEST_F(PartsGguf, WrongKeysAndTypesAreNamed) {
  const auto absent = model_->integer("t.u16s");
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code, Code::kNotFound);
  EXPECT_THAT(absent.error().fix, HasSubstr("t.u16"));
  const auto text = model_->integer("general.architecture");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().code, Code::kInvalidArgument);
  EXPECT_THAT(text.error().why, HasSubstr("str"));
  const auto large = model_->integer("t.u64");
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code, Code::kOutOfRange);
  EXPECT_THAT(large.error().why, HasSubstr("9223372036854775808"));
  for (const char* key : {"t.u8", "t.strings", "t.nested"}) {
    EXPECT_EQ(model_->integers(key).error().code, Code::kInvalidArgument) << key;
    EXPECT_EQ(model_->text(key).error().code, Code::kInvalidArgument) << key;
  }
  EXPECT_FALSE(model_->texts("t.nested"));
  EXPECT_FALSE(model_->numbers("t.strings"));
  EXPECT_FALSE(model_->boolean("t.u8")) << "200 is neither 0 nor 1";
}

TEST_F(PartsGguf, TensorsHaveTheirShapeOuterToInner) {
  const auto found = model_->tensor("blk.0.exps.weight");
  ASSERT_TRUE(found);
  const GgufTensor& tensor = **found;
  EXPECT_EQ(tensor.type, "Q4_K");
  EXPECT_THAT(tensor.shape, ElementsAre(2, 1, 256));
  EXPECT_EQ(tensor.rows, 2u);
  EXPECT_EQ(tensor.row_elements, 256u);
  EXPECT_EQ(tensor.row_bytes, 144u);
  EXPECT_EQ(tensor.bytes, 288u);
  EXPECT_TRUE(tensor.decoded);
  EXPECT_EQ(model_->parts()[tensor.part].path, path_);
  // The mapping holds what the file holds there.
  std::ifstream file(path_, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(tensor.file_offset));
  std::vector<char> bytes(tensor.bytes);
  ASSERT_TRUE(file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())));
  EXPECT_EQ(std::memcmp(bytes.data(), tensor.data, bytes.size()), 0);
}

TEST_F(PartsGguf, ViewsSurviveAMove) {
  const GgufTensor* const before = *model_->tensor("norm.weight");
  const GgufModel moved = std::move(*model_);
  EXPECT_EQ(*moved.tensor("norm.weight"), before);
  EXPECT_EQ(before->name, "norm.weight");
}

TEST_F(PartsGguf, RowsThatCannotBeDecodedAreRefused) {
  std::vector<float> out(64, 7.0F);
  EXPECT_EQ(model_->decode_rows("blk.0.q.weight", 0, std::span(out).first(33)).error().code,
            Code::kInvalidArgument);
  EXPECT_EQ(model_->decode_rows("blk.0.q.weight", 2, out).error().code, Code::kOutOfRange);
  EXPECT_EQ(model_->decode_rows("blk.0.q.weight", UINT64_MAX, out).error().code, Code::kOutOfRange);
  const auto name = model_->decode_rows("blk.0.q.weights", 0, out);
  EXPECT_EQ(name.error().code, Code::kNotFound);
  EXPECT_THAT(name.error().fix, HasSubstr("blk.0.q.weight"));
  EXPECT_THAT(out, testing::Each(7.0F)) << "a refusal writes nothing";
  EXPECT_TRUE(model_->decode_rows("blk.0.q.weight", 3, {})) << "no rows are whole rows";
  EXPECT_TRUE(model_->decode_rows("blk.0.q.weight", 1, out)) << "the last two of three";
}

TEST_F(PartsGguf, ATypeWithoutADecoderIsRefused) {
  const std::vector<std::byte> data(16);
  const uint64_t ne[] = {4};
  gguf::Writer writer;
  writer.add_tensor("counts", tensor::DType::kI32, ne, data);  // ggml's I32 holds no weights
  ASSERT_TRUE(writer.write(path_));
  const auto model = GgufModel::open(path_);
  ASSERT_TRUE(model);
  EXPECT_FALSE((*model->tensor("counts"))->decoded);
  std::vector<float> out(4, 7.0F);
  const Status done = model->decode_rows("counts", 0, out);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, Code::kUnsupported);
  EXPECT_THAT(done.error().what, HasSubstr("I32"));
  EXPECT_THAT(out, testing::Each(7.0F));
}

TEST(PartsGgufFile, RowsOfARealModelAreThoseOfTheDecoder) {
  const auto model = GgufModel::open(test::bundled_model_path());
  ASSERT_TRUE(model) << model.error().to_string();
  const GgufTensor& tensor = **model->tensor("token_embd.weight");
  EXPECT_THAT(tensor.shape, ElementsAre(3072, 256));
  std::vector<float> rows(3 * 256), want(256);
  ASSERT_TRUE(model->decode_rows(tensor.name, 41, rows));
  for (uint64_t r = 0; r < 3; ++r) {
    tensor::dequantize_row(tensor::DType::kQ8_0, tensor.data + (41 + r) * tensor.row_bytes, 256,
                           want.data());
    EXPECT_EQ(std::memcmp(want.data(), rows.data() + r * 256, 256 * sizeof(float)), 0);
  }
}

TEST(PartsGgufFile, OverridesAndBadFilesGiveErrors) {
  const std::string path = test::bundled_model_path();
  const auto changed = GgufModel::open(path, {"general.name=str:other"});
  ASSERT_TRUE(changed);
  EXPECT_EQ(*changed->text("general.name"), "other");
  EXPECT_EQ(GgufModel::open(path, {"general.name"}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(GgufModel::open(path + ".not").error().code, Code::kNotFound);
  EXPECT_EQ(GgufModel::open("").error().code, Code::kNotFound);
  EXPECT_FALSE(GgufModel::open(test::data_path("jinja_cases.json")));
}

}  // namespace
}  // namespace topknot
