// Files on disk: split models, directories, the writer. T-6.1.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/strings.h"
#include "gguf/model_file.h"
#include "gguf/split_name.h"
#include "gguf/test_support.h"

namespace topknot::gguf {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Split : public testing::Test {
 protected:
  Split() {
    std::string pattern = (fs::temp_directory_path() / "topknot_gguf_XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
  }
  ~Split() override { fs::remove_all(directory_); }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  std::string part_path(uint32_t number, uint32_t count = 3) const {
    return split_name(path("m"), number, count);
  }

  struct Part {
    uint32_t number = 1;    // in the file's name
    uint32_t count = 3;     // in the file's name
    int no = -1;            // split.no; -1: number - 1
    int claimed = -1;       // split.count; -1: count
    int total = 4;          // split.tensors.count
    int tensors = 2;        // here, named "p<no>.t<i>"
    std::string name = {};  // of the first tensor, if not that
  };

  // Three parts: metadata only, two tensors, two tensors.
  void write_three() {
    write({.number = 1, .tensors = 0});
    write({.number = 2});
    write({.number = 3});
  }

  void write(const Part& part) {
    const int no = part.no < 0 ? static_cast<int>(part.number) - 1 : part.no;
    const int count = part.claimed < 0 ? static_cast<int>(part.count) : part.claimed;
    // Later parts have another alignment, hence their own data_begin.
    Writer writer({.alignment = no == 0 ? 32U : 64U});
    if (no == 0) writer.add_string("general.architecture", "glm-dsa");
    writer.add("split.no", static_cast<uint16_t>(no));
    writer.add("split.count", static_cast<uint16_t>(count));
    writer.add("split.tensors.count", part.total);
    const Bytes data(16, std::byte(no));
    const uint64_t ne[] = {4};
    for (int i = 0; i < part.tensors; ++i) {
      const std::string name = cat("p", no, ".t", i);
      writer.add_tensor(i == 0 && !part.name.empty() ? part.name : name, tensor::DType::kF32, ne,
                        data);
    }
    const auto status = writer.write(part_path(part.number, part.count));
    ASSERT_TRUE(status) << status.error().to_string();
  }

  Error refusal(const std::string& at) {
    auto model = ModelFile::open(at);
    EXPECT_FALSE(model) << "was accepted";
    return model ? Error{} : model.error();
  }

  fs::path directory_;
};

TEST(SplitName, Parse) {
  const auto name = parse_split_name("dir/GLM-5-00002-of-00010.gguf");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->prefix, "dir/GLM-5");
  EXPECT_EQ(name->number, 2u);
  EXPECT_EQ(name->count, 10u);
  EXPECT_EQ(split_name(name->prefix, 2, 10), "dir/GLM-5-00002-of-00010.gguf");
  for (const char* other : {"a.gguf", "a-00001-of-00002.bin", "a-0001-of-0002.gguf", ".gguf",
                            "a-00001-of-0000x.gguf", "a_00001-of-00002.gguf", "-of-00002.gguf"}) {
    EXPECT_FALSE(parse_split_name(other)) << other;
  }
}

TEST_F(Split, OpensByAnyPartAndByDirectory) {
  write_three();
  for (const std::string& at : {part_path(1), part_path(2), part_path(3), directory_.string()}) {
    auto opened = ModelFile::open(at);
    ASSERT_TRUE(opened) << opened.error().to_string();
    const ModelFile model = std::move(*opened);  // the mappings move along
    EXPECT_EQ(model.path(), part_path(1));
    EXPECT_EQ(model.parts().size(), 3u);
    EXPECT_EQ(model.tensors().size(), 4u);
    EXPECT_EQ(model.find_key("general.architecture")->as_string(), "glm-dsa");
    const TensorInfo& last = *model.find_tensor("p2.t1");
    EXPECT_EQ(model.path_of(last), part_path(3));
    EXPECT_EQ(last.data[15], std::byte{2});
    EXPECT_EQ(last.file_offset % 64, 0u);
    EXPECT_EQ(model.total_bytes(), fs::file_size(part_path(1)) + fs::file_size(part_path(2)) +
                                       fs::file_size(part_path(3)));
  }
}

TEST_F(Split, MissingPartsAreNamed) {
  write_three();
  fs::remove(part_path(1));
  fs::remove(part_path(3));
  const Error error = refusal(part_path(2));
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_THAT(error.why, AllOf(HasSubstr("part 1 of 3 is missing: " + part_path(1)),
                               HasSubstr("part 3 of 3 is missing: " + part_path(3))));
  EXPECT_THAT(refusal(directory_.string()).why, HasSubstr("part 1 of 3 is missing"));
  EXPECT_EQ(refusal(part_path(3)).what, "cannot open the file") << "the user's own path is wrong";
}

TEST_F(Split, TruncatedLastPart) {
  write_three();
  const auto size = fs::file_size(part_path(3));
  fs::resize_file(part_path(3), size - 50);
  const Error error = refusal(part_path(1));
  EXPECT_EQ(error.code, Code::kCorrupt);
  EXPECT_THAT(error.why, AllOf(HasSubstr("m-00003-of-00003.gguf: the file is cut short"),
                               HasSubstr("needs 16 bytes"), HasSubstr(cat("has ", size - 50))));
  fs::resize_file(part_path(3), 30);
  EXPECT_THAT(refusal(part_path(1)).why, HasSubstr("m-00003-of-00003.gguf: "));
  fs::resize_file(part_path(3), 0);
  EXPECT_THAT(refusal(part_path(1)).why, HasSubstr("m-00003-of-00003.gguf: the file is empty"));
}

TEST_F(Split, PartsOfAnotherDownload) {
  write_three();
  write({.number = 2, .claimed = 5});
  EXPECT_THAT(refusal(part_path(1)).why,
              HasSubstr("m-00002-of-00003.gguf: its name says 3 parts, split.count says 5"));
  write({.number = 2, .tensors = 3});
  EXPECT_THAT(refusal(part_path(1)).why,
              HasSubstr("split.tensors.count is 4, but the parts hold 5 tensors"));
}

TEST_F(Split, RepeatedPart) {
  write_three();
  write({.number = 3, .no = 1});
  EXPECT_THAT(refusal(part_path(1)).why,
              AllOf(HasSubstr("m-00003-of-00003.gguf: its name says part 3, split.no says part 2"),
                    HasSubstr("part 2 again: m-00002-of-00003.gguf has the same split.no")));
}

TEST_F(Split, SameTensorInTwoParts) {
  write_three();
  write({.number = 3, .name = "p1.t0"});
  EXPECT_THAT(refusal(part_path(1)).why,
              HasSubstr("tensor 'p1.t0' is there twice, in m-00002-of-00003.gguf and "
                        "m-00003-of-00003.gguf"));
}

TEST_F(Split, UnknownTypeNamesThePart) {
  write_three();
  Bytes data(16);
  Writer writer;
  writer.add("split.no", uint16_t{1});
  writer.add("split.count", uint16_t{3});
  const uint64_t ne[] = {4};
  writer.add_tensor_unchecked("blk.9.w", 139, ne, data);
  ASSERT_TRUE(writer.write(part_path(2)));
  EXPECT_THAT(refusal(part_path(1)).why,
              HasSubstr("m-00002-of-00003.gguf: tensor 'blk.9.w' has type id 139 (IQ4_K"));
}

TEST_F(Split, NamesAndKeysMustAgree) {
  write({.number = 1, .count = 1, .total = 2});
  EXPECT_TRUE(ModelFile::open(part_path(1, 1))) << "a split into one";
  fs::rename(part_path(1, 1), part_path(1, 2));
  fs::copy(part_path(1, 2), part_path(2, 2));
  EXPECT_THAT(refusal(part_path(1, 2)).why, HasSubstr("its name says 2 parts, split.count says 1"));

  ASSERT_TRUE(Writer().write(part_path(1, 4)));
  EXPECT_THAT(refusal(part_path(1, 4)).why, HasSubstr("the key split.no is absent"));

  write({.number = 2});
  fs::rename(part_path(2), path("renamed.gguf"));
  EXPECT_THAT(refusal(path("renamed.gguf")).why, HasSubstr("part 2 of 3, but its name"));

  for (const auto& [number, count] : {std::pair{0u, 3u}, {4u, 3u}, {1u, 0u}, {1u, 99999u}}) {
    ASSERT_TRUE(Writer().write(part_path(number, count)));
    EXPECT_THAT(refusal(part_path(number, count)).why,
                HasSubstr(cat("part ", number, " of ", count)));
  }
}

TEST_F(Split, DirectoriesWithNoneOrSeveral) {
  EXPECT_EQ(refusal(directory_.string()).code, Code::kNotFound);
  ASSERT_TRUE(Writer().write(path("mtp-a.gguf")));
  EXPECT_THAT(refusal(directory_.string()).why, HasSubstr("mtp-"));
  ASSERT_TRUE(Writer().write(path("a.gguf")));
  EXPECT_TRUE(ModelFile::open(directory_.string())) << "a side-car is no second model";
  std::ofstream(path("notes.txt")) << "x";
  fs::create_directory(path("sub.gguf"));
  EXPECT_TRUE(ModelFile::open(directory_.string()));
  write_three();
  const Error error = refusal(directory_.string());
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_THAT(error.why,
              AllOf(HasSubstr("2 models"), HasSubstr("a.gguf"), HasSubstr("m-00001-of-00003.gguf"),
                    Not(HasSubstr("mtp-")), Not(HasSubstr("00002-of"))));
}

TEST_F(Split, WriterOnDiskEqualsMemoryAndReadsBack) {
  const Bytes bytes = sample_model();
  const auto read = ModelFile::from_memory(bytes, "a");
  ASSERT_TRUE(read);
  // Copies every key and tensor from what was read: the result must be the same file.
  Writer copy;
  for (const KeyValue& entry : read->metadata()) copy.add_value(entry.key, entry.value);
  for (const TensorInfo& tensor : read->tensors()) {
    copy.add_tensor(tensor.name, tensor.type, std::span(tensor.ne).first(tensor.dims),
                    {tensor.data, tensor.bytes});
  }
  EXPECT_EQ(copy.to_bytes(), bytes);
  ASSERT_TRUE(copy.write(path("copy.gguf")));
  EXPECT_FALSE(fs::exists(path("copy.gguf.partial")));
  std::ifstream in(path("copy.gguf"), std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto written = std::as_bytes(std::span(text));
  EXPECT_EQ(Bytes(written.begin(), written.end()), bytes);
}

TEST_F(Split, WriterSaysWhyItCannotWrite) {
  const auto status = Writer().write(path("no/such/directory/a.gguf"));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kIo);
  EXPECT_THAT(status.error().why, HasSubstr("No such file"));
}

}  // namespace
}  // namespace topknot::gguf
