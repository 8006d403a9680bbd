// Reading one file: what is read, and every reason to refuse it.
#include "gguf/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gguf/test_support.h"

namespace topknot::gguf {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr uint32_t kF32 = 0;
constexpr uint32_t kQ8_0 = 8;
constexpr uint32_t kQ4_K = 12;

Result<ModelFile> read(const Bytes& bytes) { return ModelFile::from_memory(bytes, "test.gguf"); }

// The error of a file that must be refused.
Error refusal(const Bytes& bytes) {
  auto model = read(bytes);
  EXPECT_FALSE(model) << "was accepted";
  return model ? Error{} : model.error();
}

TEST(ModelFile, EveryValueTypeComesBack) {
  for (const uint32_t version : {2u, 3u}) {
    const Bytes bytes = sample_model({.version = version});
    const auto model = read(bytes);
    ASSERT_TRUE(model) << model.error().to_string();
    EXPECT_EQ(model->parts().front().version, version);
    const auto value = [&](std::string_view key) -> const Value& { return *model->find_key(key); };
    EXPECT_EQ(value("general.architecture").as_string(), "glm-dsa");
    EXPECT_EQ(value("t.u8").as_unsigned(), 200u);
    EXPECT_EQ(value("t.i8").as_signed(), -100);
    EXPECT_EQ(value("t.u16").as_unsigned(), 60000u);
    EXPECT_EQ(value("t.i16").as_signed(), -30000);
    EXPECT_EQ(value("t.u32").as_unsigned(), 4'000'000'000u);
    EXPECT_EQ(value("t.i32").as_signed(), -2'000'000'000);
    EXPECT_EQ(value("t.u64").as_unsigned(), uint64_t{1} << 63);
    EXPECT_EQ(value("t.i64").as_signed(), -(int64_t{1} << 62));
    EXPECT_EQ(value("t.f32").as_number(), double{1e-5F});
    EXPECT_EQ(value("t.f64").as_number(), 0.1);
    EXPECT_EQ(value("t.bool").as_bool(), true);
    EXPECT_EQ(value("t.bytes").as_string(), std::string_view("a\0b\xFFz", 5));
    EXPECT_EQ(value("t.i32s").to_string(), "[i32 x 3] 1, -2, 3");
    EXPECT_EQ(value("t.strings").as_array()->strings[2], std::string_view("t\0wo", 4));
    EXPECT_EQ(value("t.nested").to_string(), "[arr x 2] [u16 x 2] 513, 1027, [u16 x 2] 513, 1027");
    EXPECT_EQ(model->find_key("t.none"), nullptr);
  }
}

TEST(ModelFile, TensorsHaveTheirShapeTypeAndBytes) {
  for (const uint64_t alignment : {uint64_t{8}, uint64_t{32}, uint64_t{4096}}) {
    const Bytes bytes = sample_model({.alignment = alignment});
    const auto model = read(bytes);
    ASSERT_TRUE(model) << model.error().to_string();
    EXPECT_EQ(model->tensors().size(), 4u);
    EXPECT_EQ(model->parts().front().alignment, alignment);
    EXPECT_EQ(model->find_tensor("blk.0.q"), nullptr) << "names are matched whole";
    const TensorInfo& experts = *model->find_tensor("blk.0.exps.weight");
    EXPECT_EQ(experts.type, tensor::DType::kQ4_K);
    EXPECT_EQ(shape_string(experts), "{256, 1, 2}");
    EXPECT_EQ(experts.elements(), 512u);
    EXPECT_EQ(experts.bytes, 288u);
    EXPECT_EQ(experts.file_offset % alignment, 0u);
    EXPECT_EQ(experts.data, bytes.data() + experts.file_offset);
    for (size_t i = 0; i < experts.bytes; ++i) ASSERT_EQ(experts.data[i], std::byte(i));
  }
}

TEST(ModelFile, StaysValidWhenMoved) {
  const Bytes bytes = sample_model();
  auto opened = read(bytes);
  ASSERT_TRUE(opened);
  ModelFile moved = std::move(*opened);
  ModelFile again = std::move(moved);
  EXPECT_EQ(again.find_tensor("norm.weight")->bytes, 12u);
  EXPECT_EQ(again.path(), "test.gguf");
  EXPECT_GT(read_everything(again), 0u);
}

TEST(ModelFile, OverridesReplaceAndAdd) {
  const Bytes bytes = sample_model();
  const Override overrides[] = {{"t.u32", int64_t{7}},
                                {"t.bool", false},
                                {"new.float", 0.5},
                                {"new.text", std::string("x")},
                                {"new.text", std::string("y")}};
  auto opened = ModelFile::from_memory(bytes, "test.gguf", overrides);
  ASSERT_TRUE(opened);
  const ModelFile model = std::move(*opened);
  EXPECT_EQ(model.find_key("t.u32")->as_unsigned(), 7u);
  EXPECT_EQ(model.find_key("t.bool")->as_bool(), false);
  EXPECT_EQ(model.find_key("new.float")->as_number(), 0.5);
  EXPECT_EQ(model.find_key("new.text")->as_string(), "y") << "the last one counts";
  EXPECT_EQ(model.metadata().size(), read(bytes)->metadata().size() + 2);
}

TEST(ModelFile, AScalarAndAModelWithoutTensorsAreFine) {
  RawFile scalar{.data_bytes = 4};
  const Bytes bytes = scalar.tensor("s", {}, kF32, 0).bytes();
  const auto with_scalar = read(bytes);
  ASSERT_TRUE(with_scalar) << with_scalar.error().to_string();
  EXPECT_EQ(with_scalar->find_tensor("s")->elements(), 1u);
  EXPECT_EQ(shape_string(*with_scalar->find_tensor("s")), "{1}");
  EXPECT_TRUE(read(RawFile().key("k", ValueType::kU8, "\1").bytes()));
}

TEST(ModelFile, NotAGguf) {
  EXPECT_THAT(refusal({}).why, HasSubstr("empty"));
  EXPECT_THAT(refusal(RawFile{.magic = "PK\3\4"}.bytes()).why,
              AllOf(HasSubstr("not a GGUF file"), HasSubstr("PK\\x03\\x04")));
  EXPECT_THAT(refusal(RawFile{.magic = "version https://git-lfs.github.com/spec/v1\n"}.bytes()).fix,
              HasSubstr("git lfs pull"));
}

TEST(ModelFile, OtherVersionsAreUnsupported) {
  const auto error = [](uint32_t version) { return refusal(RawFile{.version = version}.bytes()); };
  EXPECT_EQ(error(1).code, Code::kUnsupported);
  EXPECT_THAT(error(1).why, HasSubstr("version 1"));
  EXPECT_THAT(error(4).why, HasSubstr("version 4"));
  EXPECT_THAT(error(0x03000000).why, HasSubstr("big-endian"));
  EXPECT_EQ(error(0x03000000).code, Code::kUnsupported);
}

TEST(ModelFile, CountsTheFileCannotHold) {
  EXPECT_THAT(refusal(RawFile{.key_count = 1000}.bytes()).why,
              HasSubstr("claims 1000 metadata keys"));
  EXPECT_THAT(refusal(RawFile{.tensor_count = 1000}.bytes()).why, HasSubstr("claims 1000 tensors"));
  EXPECT_THAT(refusal(RawFile{.key_count = ~0ULL}.bytes()).why,
              HasSubstr("claims 18446744073709551615 metadata keys; at most"));
  EXPECT_THAT(refusal(RawFile{.tensor_count = 1ULL << 63}.bytes()).why,
              HasSubstr("claims 9223372036854775808 tensors; at most"));
  const std::string strings = raw(uint32_t{8}) + raw(uint64_t{1} << 27);
  EXPECT_THAT(refusal(RawFile().key("tokens", ValueType::kArray, strings).bytes()).why,
              AllOf(HasSubstr("'tokens'"), HasSubstr("cut short")));
  const std::string elements = raw(uint32_t{0}) + raw(kMaxArrayElements + 1);
  EXPECT_THAT(refusal(RawFile().key("flags", ValueType::kArray, elements).bytes()).why,
              AllOf(HasSubstr("'flags'"), HasSubstr("268435457 elements")));
  const std::string arrays = raw(uint32_t{9}) + raw(kMaxNestedArrays + 1);
  EXPECT_THAT(refusal(RawFile().key("deep", ValueType::kArray, arrays).bytes()).why,
              AllOf(HasSubstr("'deep'"), HasSubstr("65537 elements")));
}

TEST(ModelFile, StringsLongerThanTheFileOrTheLimit) {
  EXPECT_THAT(refusal(RawFile().key("k", ValueType::kString, raw(~0ULL)).bytes()).why,
              AllOf(HasSubstr("'k'"), HasSubstr("needs 18446744073709551615 bytes")));
  const std::string key(kMaxKeyBytes + 1, 'k');
  EXPECT_THAT(refusal(RawFile().key(key, ValueType::kU8, "\1").bytes()).why,
              AllOf(HasSubstr("65536 bytes"), HasSubstr("at most 65535")));
  const std::string name(kMaxTensorNameBytes + 1, 'n');
  RawFile file{.data_bytes = 4};
  EXPECT_THAT(refusal(file.tensor(name, {1}, kF32, 0).bytes()).why,
              AllOf(HasSubstr("257 bytes"), HasSubstr("at most 256")));
}

TEST(ModelFile, ValueTypesAndBools) {
  EXPECT_THAT(refusal(RawFile().key_of_type("k", 13, "").bytes()).why,
              AllOf(HasSubstr("'k'"), HasSubstr("value type 13")));
  EXPECT_THAT(
      refusal(RawFile().key_of_type("k", 9, raw(uint32_t{99}) + raw(uint64_t{0})).bytes()).why,
      AllOf(HasSubstr("'k'"), HasSubstr("element type 99")));
  EXPECT_THAT(refusal(RawFile().key("flag", ValueType::kBool, "\2").bytes()).why,
              AllOf(HasSubstr("'flag'"), HasSubstr("bool of 2")));
}

TEST(ModelFile, ArrayDepthIsBounded) {
  EXPECT_TRUE(read(RawFile().key("k", ValueType::kArray, nested_arrays(kMaxArrayDepth)).bytes()));
  EXPECT_THAT(
      refusal(RawFile().key("k", ValueType::kArray, nested_arrays(kMaxArrayDepth + 1)).bytes()).why,
      AllOf(HasSubstr("'k'"), HasSubstr("more than 4 deep")));
  EXPECT_FALSE(read(RawFile().key("k", ValueType::kArray, nested_arrays(1000)).bytes()));
}

TEST(ModelFile, DuplicateKeysAndTensors) {
  EXPECT_THAT(
      refusal(RawFile().key("k", ValueType::kU8, "\1").key("k", ValueType::kU8, "\1").bytes()).why,
      HasSubstr("key 'k' is there twice"));
  RawFile file{.data_bytes = 64};
  EXPECT_THAT(refusal(file.tensor("t", {1}, kF32, 0).tensor("t", {1}, kF32, 32).bytes()).why,
              HasSubstr("tensor 't' is there twice"));
}

// T-6.2: by name, tensor and file.
TEST(ModelFile, UnknownTensorTypesAreNamed) {
  RawFile file{.data_bytes = 64};
  file.tensor("blk.3.ffn_up_exps.weight", {256, 2}, 139, 0).tensor("old", {32}, 4, 0);
  const Error error = refusal(file.bytes());
  EXPECT_EQ(error.code, Code::kUnsupported);
  EXPECT_EQ(error.where, "test.gguf");
  EXPECT_THAT(error.why,
              AllOf(HasSubstr("tensor 'blk.3.ffn_up_exps.weight' has type id 139 (IQ4_K"),
                    HasSubstr("tensor 'old' has type id 4 (Q4_2, removed")));
}

TEST(ModelFile, Shapes) {
  const auto why = [](const std::vector<uint64_t>& ne, uint32_t type) {
    RawFile file{.data_bytes = 4096};
    return refusal(file.tensor("w", ne, type, 0).bytes()).why;
  };
  EXPECT_THAT(why({192, 2}, kQ4_K),
              AllOf(HasSubstr("'w' of shape {192, 2}"), HasSubstr("rows of 192"), HasSubstr("256"),
                    HasSubstr("Q4_K")));
  EXPECT_THAT(why({8, 4}, kQ8_0), HasSubstr("rows of 8"))
      << "the product is a multiple, a row is not";
  EXPECT_THAT(why({4, 0}, kF32), AllOf(HasSubstr("'w'"), HasSubstr("no elements")));
  EXPECT_THAT(why({1ULL << 32, 1ULL << 32}, kF32), HasSubstr("64 bits"));
  EXPECT_THAT(why({1ULL << 62}, kF32), HasSubstr("64 bits")) << "bytes overflow, elements do not";
  EXPECT_THAT(why({1, 1, 1, 1, 1}, kF32), AllOf(HasSubstr("'w'"), HasSubstr("5 dimensions")));
}

TEST(ModelFile, OffsetsOutsideOverlappingAndMisaligned) {
  const auto why = [](uint64_t first, uint64_t second) {
    RawFile file{.data_bytes = 96};
    file.tensor("a", {16}, kF32, first).tensor("b", {8}, kF32, second);
    return refusal(file.bytes()).why;
  };
  EXPECT_THAT(why(0, 32), AllOf(HasSubstr("'a' and 'b' overlap"), HasSubstr("at offset")));
  EXPECT_THAT(why(32, 32), HasSubstr("overlap"));
  EXPECT_THAT(why(0, 68), AllOf(HasSubstr("'b' begins at offset 68"), HasSubstr("alignment 32")));
  EXPECT_THAT(why(0, 96),
              AllOf(HasSubstr("tensor 'b' needs 32 bytes at"), HasSubstr("the file has")));
  EXPECT_THAT(why(0, ~uint64_t{31}), AllOf(HasSubstr("'b'"), HasSubstr("18446744073709551584")))
      << "the sum wraps";
  EXPECT_THAT(why(64, 96), HasSubstr("the first of 2 tensors outside the file"));
}

// A large tensor hides a small one behind it from its neighbour in offset order.
TEST(ModelFile, OverlapIsFoundAcrossANeighbour) {
  RawFile file{.data_bytes = 256};
  file.tensor("big", {64}, kF32, 0).tensor("in", {1}, kF32, 32).tensor("late", {1}, kF32, 96);
  EXPECT_THAT(refusal(file.bytes()).why,
              AllOf(HasSubstr("'big' and 'in'"), HasSubstr("'big' and 'late'")));
}

TEST(ModelFile, AlignmentKey) {
  for (const uint32_t bad : {0u, 4u, 12u, 1u << 31}) {
    EXPECT_THAT(refusal(RawFile().key("general.alignment", ValueType::kU32, raw(bad)).bytes()).why,
                AllOf(HasSubstr("general.alignment is"), HasSubstr(std::to_string(bad))));
  }
  EXPECT_THAT(
      refusal(RawFile().key("general.alignment", ValueType::kString, raw_string("32")).bytes()).why,
      HasSubstr("general.alignment"));
  EXPECT_TRUE(read(RawFile().key("general.alignment", ValueType::kU64, raw(uint64_t{8})).bytes()));
}

TEST(ModelFile, AllProblemsAreReportedAtOnce) {
  RawFile file{.data_bytes = 64};
  file.key("k", ValueType::kBool, "\5").key("k", ValueType::kU8, "\1");
  file.tensor("odd", {3}, kQ8_0, 0).tensor("alien", {32}, 97, 0).tensor("far", {8}, kF32, 4096);
  const Error error = refusal(file.bytes());
  EXPECT_THAT(error.why,
              AllOf(HasSubstr("bool of 5"), HasSubstr("'k' is there twice"), HasSubstr("'odd'"),
                    HasSubstr("'alien' has type id 97"), HasSubstr("'far'")));
  EXPECT_EQ(error.code, Code::kCorrupt) << "damage outweighs what is merely unsupported";
}

TEST(ModelFile, TheListOfProblemsIsBounded) {
  RawFile file;
  for (int i = 0; i < 100; ++i) file.tensor(std::to_string(i), {3}, kQ8_0, 0);
  const std::string why = refusal(file.bytes()).why;
  EXPECT_THAT(why, HasSubstr("\nand 80 more"));
  EXPECT_THAT(why, Not(HasSubstr("tensor '20'")));
  EXPECT_EQ(std::count(why.begin(), why.end(), '\n'), 20);
}

TEST(ModelFile, HostileNamesAreMadePrintable) {
  RawFile file{.data_bytes = 4};
  EXPECT_THAT(refusal(file.tensor("a\x1b[31m\n", {1}, 97, 0).bytes()).why,
              AllOf(HasSubstr("'a\\x1b[31m\\x0a'"), Not(HasSubstr("\x1b"))));
}

TEST(ModelFile, PartOfASplitIsNoWholeModel) {
  RawFile file;
  file.key("split.no", ValueType::kU16, raw(uint16_t{1}));
  file.key("split.count", ValueType::kU16, raw(uint16_t{3}));
  EXPECT_THAT(refusal(file.bytes()).why, HasSubstr("part 2 of 3"));
}

}  // namespace
}  // namespace topknot::gguf
