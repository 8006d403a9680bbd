// Models written piece by piece: whole, in parts, headers only, and what failures leave behind.
#include "gguf/stream_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/strings.h"
#include "gguf/model_file.h"
#include "gguf/split_name.h"
#include "gguf/writer.h"

namespace topknot::gguf {
namespace {

namespace fs = std::filesystem;
using tensor::DType;
using testing::ElementsAre;
using testing::HasSubstr;

TensorSpec spec(const std::string& name, DType type, std::vector<uint64_t> ne) {
  TensorSpec out{.name = name, .type = type, .dims = static_cast<uint32_t>(ne.size())};
  std::copy(ne.begin(), ne.end(), out.ne.begin());
  return out;
}

// What tensor `index` holds at `offset`.
std::byte expected(size_t index, uint64_t offset) {
  return static_cast<std::byte>((index * 31 + offset * 7 + (offset >> 20)) & 0xFF);
}

Status fill(size_t index, uint64_t offset, std::span<std::byte> out) {
  for (size_t i = 0; i < out.size(); ++i) out[i] = expected(index, offset + i);
  return {};
}

class StreamWriter : public testing::Test {
 protected:
  StreamWriter() {
    std::string pattern = (fs::temp_directory_path() / "topknot_stream_XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
    metadata_.add_string("general.architecture", "glm-dsa");
    metadata_.add("n", uint32_t{3});
  }
  ~StreamWriter() override { fs::remove_all(directory_); }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      out.push_back(entry.path().filename().string());
    }
    std::sort(out.begin(), out.end());
    return out;
  }

  Result<std::vector<PlannedPart>> write(const StreamOptions& options = {}) {
    return write_model(path("m"), metadata_, tensors_, fill, options);
  }

  void expect_content(const std::string& at) {
    const auto model = ModelFile::open(at);
    ASSERT_TRUE(model) << model.error().to_string();
    ASSERT_EQ(model->tensors().size(), tensors_.size());
    EXPECT_EQ(model->find_key("n")->as_unsigned(), 3U);
    for (size_t t = 0; t < tensors_.size(); ++t) {
      const TensorInfo* found = model->find_tensor(tensors_[t].name);
      ASSERT_NE(found, nullptr);
      EXPECT_EQ(found->type, tensors_[t].type);
      EXPECT_EQ(found->dims, tensors_[t].dims);
      EXPECT_EQ(found->ne, tensors_[t].ne);
      ASSERT_EQ(found->bytes, tensor_bytes(tensors_[t]));
      uint64_t wrong = 0;
      for (uint64_t i = 0; i < found->bytes; ++i) wrong += found->data[i] != expected(t, i);
      EXPECT_EQ(wrong, 0U) << tensors_[t].name;
    }
  }

  fs::path directory_;
  MetadataEncoder metadata_;
  std::vector<TensorSpec> tensors_ = {
      spec("a.weight", DType::kF32, {5}),         spec("b.weight", DType::kQ4_K, {512, 3}),
      spec("c.weight", DType::kQ8_0, {32, 2, 3}), spec("d.weight", DType::kQ6_K, {256, 7, 2}),
      spec("e.weight", DType::kF16, {3, 3}),
  };
};

TEST_F(StreamWriter, OneFileReadsBackAndHasThePlannedSize) {
  const auto parts = write();
  ASSERT_TRUE(parts) << parts.error().to_string();
  EXPECT_THAT(files(), ElementsAre("m.gguf"));
  ASSERT_EQ(parts->size(), 1U);
  EXPECT_EQ(parts->front().bytes, fs::file_size(path("m.gguf")));
  expect_content(path("m.gguf"));
  const auto model = ModelFile::open(path("m.gguf"));
  EXPECT_EQ(model->parts()[0].data_begin, parts->front().header_bytes);
}

TEST_F(StreamWriter, WritesTheBytesOfTheWriterInMemory) {
  ASSERT_TRUE(write());
  Writer writer;
  writer.append(metadata_);
  std::vector<std::vector<std::byte>> data;
  for (size_t t = 0; t < tensors_.size(); ++t) {
    data.emplace_back(tensor_bytes(tensors_[t]));
    ASSERT_TRUE(fill(t, 0, data.back()));
    writer.add_tensor(tensors_[t].name, tensors_[t].type,
                      std::span(tensors_[t].ne).first(tensors_[t].dims), data.back());
  }
  ASSERT_TRUE(writer.write(path("w.gguf")));
  const auto bytes = [&](const char* name) {
    std::ifstream file(path(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_EQ(bytes("m.gguf"), bytes("w.gguf"));
}

TEST_F(StreamWriter, LargeTensorsComeInWholeBlocksOfBoundedPieces) {
  tensors_ = {spec("big.weight", DType::kQ6_K, {256, 1 << 17})};  // 26 MiB
  uint64_t next = 0;
  size_t pieces = 0;
  const TensorSource source = [&](size_t index, uint64_t offset, std::span<std::byte> out) {
    EXPECT_EQ(offset, next);
    EXPECT_EQ(out.size() % 210, 0U);
    EXPECT_LE(out.size(), kMaxPieceBytes);
    next += out.size();
    ++pieces;
    return fill(index, offset, out);
  };
  ASSERT_TRUE(write_model(path("m"), metadata_, tensors_, source, {}));
  EXPECT_EQ(next, tensor_bytes(tensors_[0]));
  EXPECT_EQ(pieces, 2U);
  expect_content(path("m.gguf"));
}

TEST_F(StreamWriter, PartsHoldWhatTheWholeHolds) {
  const auto parts =
      write({.split = {.max_tensors = 2, .max_bytes = 0, .metadata_only_first = true}});
  ASSERT_TRUE(parts) << parts.error().to_string();
  EXPECT_THAT(files(), ElementsAre("m-00001-of-00004.gguf", "m-00002-of-00004.gguf",
                                   "m-00003-of-00004.gguf", "m-00004-of-00004.gguf"));
  for (uint32_t number = 1; number <= 4; ++number) {
    expect_content(split_name(path("m"), number, 4));
    EXPECT_EQ(fs::file_size((*parts)[number - 1].path), (*parts)[number - 1].bytes);
  }
  const auto model = ModelFile::open(parts->front().path);
  EXPECT_EQ(model->parts()[0].tensors, 0U);
  EXPECT_EQ(model->parts()[1].tensors, 2U);
  EXPECT_EQ(model->parts()[3].tensors, 1U);
  EXPECT_EQ(model->find_key("split.no")->type(), ValueType::kU16);
  EXPECT_EQ(model->find_key("split.no")->as_unsigned(), 0U);
  EXPECT_EQ(model->find_key("split.count")->as_unsigned(), 4U);
  EXPECT_EQ(model->find_key("split.tensors.count")->as_unsigned(), 5U);
}

TEST_F(StreamWriter, NoPartIsLargerThanTheLimitUnlessOneTensorIs) {
  const uint64_t limit = 1200;
  const auto parts = write({.split = {.max_bytes = limit}});
  ASSERT_TRUE(parts) << parts.error().to_string();
  ASSERT_GT(parts->size(), 1U);
  for (const PlannedPart& part : *parts) {
    EXPECT_TRUE(part.bytes <= limit || part.tensors == 1) << part.bytes;
  }
  expect_content(parts->back().path);
}

TEST_F(StreamWriter, ASplitThatFitsOnePartIsNamedAsOne) {
  const auto parts = write({.split = {.max_tensors = 100}});
  ASSERT_TRUE(parts);
  EXPECT_THAT(files(), ElementsAre("m-00001-of-00001.gguf"));
  expect_content(parts->front().path);
}

TEST_F(StreamWriter, MorePartsThanDescriptors) {
  struct rlimit old = {};
  ::getrlimit(RLIMIT_NOFILE, &old);
  tensors_.clear();
  for (int i = 0; i < 100; ++i) tensors_.push_back(spec(cat("t", i), DType::kF32, {4}));
  const struct rlimit few = {64, old.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &few);
  const auto parts = write({.split = {.max_tensors = 1}});
  ::setrlimit(RLIMIT_NOFILE, &old);
  ASSERT_TRUE(parts) << parts.error().to_string();
  EXPECT_EQ(parts->size(), 100U);
}

TEST_F(StreamWriter, HeadersOnlyHasTheFullSizeAndTakesNoSpace) {
  tensors_ = {spec("first.weight", DType::kF32, {1 << 20, 1 << 12}),  // 16 GiB
              spec("second.weight", DType::kF32, {1 << 20, 1 << 10}),
              spec("last", DType::kF32, {8})};
  const auto parts = write({.headers_only = true});
  ASSERT_TRUE(parts) << parts.error().to_string();
  const std::string at = path("m.gguf");
  EXPECT_EQ(fs::file_size(at), parts->front().bytes);
  EXPECT_GT(fs::file_size(at), uint64_t{20} << 30);
  struct stat status = {};
  ASSERT_EQ(::stat(at.c_str(), &status), 0);
  EXPECT_LT(status.st_blocks * 512, 1 << 20);
  const auto model = ModelFile::open(at);
  ASSERT_TRUE(model) << model.error().to_string();
  EXPECT_EQ(model->find_tensor("second.weight")->file_offset,
            parts->front().header_bytes + (uint64_t{16} << 30));
  EXPECT_EQ(model->find_tensor("last")->data[31], std::byte{0});
}

TEST_F(StreamWriter, OverwritesOnlyByForce) {
  std::ofstream(path("m.gguf")) << "mine";
  const auto refused = write();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  EXPECT_THAT(refused.error().fix, HasSubstr("--force"));
  EXPECT_EQ(fs::file_size(path("m.gguf")), 4U);
  EXPECT_THAT(files(), ElementsAre("m.gguf"));
  ASSERT_TRUE(write({.force = true}));
  expect_content(path("m.gguf"));
}

TEST_F(StreamWriter, ADiskTooSmallIsRefusedBeforeAnythingIsWritten) {
  const uint64_t available = fs::space(directory_).available;
  tensors_ = {spec("huge", DType::kF32, {1 << 20, (available >> 22) + 1024})};
  bool asked = false;
  const auto refused = write_model(path("m"), metadata_, tensors_,
                                   [&](size_t, uint64_t, std::span<std::byte>) {
                                     asked = true;
                                     return Status();
                                   },
                                   {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kResource);
  EXPECT_FALSE(asked);
  EXPECT_TRUE(files().empty());
  // The same headers-only needs no space.
  EXPECT_TRUE(write({.headers_only = true}));
}

TEST_F(StreamWriter, AFailingSourceLeavesNothing) {
  const TensorSource source = [](size_t index, uint64_t offset,
                                 std::span<std::byte> out) -> Status {
    if (index == 4) return Error{.code = Code::kCancelled, .what = "stopped"};
    return fill(index, offset, out);
  };
  const auto refused =
      write_model(path("m"), metadata_, tensors_, source, {.split = {.max_tensors = 1}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kCancelled);
  EXPECT_TRUE(files().empty());
}

TEST_F(StreamWriter, AFailedWriteLeavesNothing) {
  struct rlimit old = {};
  ::getrlimit(RLIMIT_FSIZE, &old);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small = {1024, old.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const auto refused = write();
  const auto refused_sparse = write({.headers_only = true});
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kResource);
  EXPECT_FALSE(refused_sparse);
  EXPECT_TRUE(files().empty());
}

TEST_F(StreamWriter, WhatAKilledRunLeftIsOverwritten) {
  std::ofstream(path("m.gguf.partial")) << std::string(100'000, 'x');
  ASSERT_TRUE(write());
  EXPECT_THAT(files(), ElementsAre("m.gguf"));
  expect_content(path("m.gguf"));
}

TEST_F(StreamWriter, RefusesTensorsThatCannotBeReadAgain) {
  const auto refusal = [&](const TensorSpec& bad) {
    tensors_.push_back(bad);
    const auto refused = write();
    tensors_.pop_back();
    EXPECT_FALSE(refused) << bad.name;
    return refused ? std::string() : refused.error().why;
  };
  EXPECT_THAT(refusal(spec("a.weight", DType::kF32, {5})), HasSubstr("twice"));
  EXPECT_THAT(refusal(spec("x", DType::kQ4_K, {192, 4})), HasSubstr("no multiple of the 256"));
  EXPECT_THAT(refusal(spec("x", DType::kF32, {4, 0})), HasSubstr("no elements"));
  EXPECT_THAT(refusal(spec("", DType::kF32, {4})), HasSubstr("0 bytes"));
  EXPECT_THAT(refusal(spec("x", DType::kF32, {1ULL << 40, 1ULL << 40})), HasSubstr("64 bits"));
  EXPECT_TRUE(files().empty());
}

TEST_F(StreamWriter, NamesADirectoryThatIsNotThere) {
  const auto refused = write_model(path("no/m"), metadata_, tensors_, fill, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kNotFound);
  EXPECT_THAT(refused.error().where, HasSubstr("no"));
}

}  // namespace
}  // namespace topknot::gguf
