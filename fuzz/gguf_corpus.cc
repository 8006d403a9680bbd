// Writes the seed files of the gguf fuzz target: make_gguf_corpus <directory>.
#include <cstdio>
#include <fstream>

#include "gguf/test_support.h"

namespace {

using namespace topknot::gguf;  // NOLINT: a program of one file

bool save(const std::string& path, const Bytes& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  return out.good();
}

Bytes part_of_split() {
  Writer writer({.alignment = 64});
  writer.add("split.no", uint16_t{1});
  writer.add("split.count", uint16_t{3});
  writer.add("split.tensors.count", int32_t{0});
  return writer.to_bytes();
}

Bytes with_tensors(const std::vector<std::pair<uint32_t, uint64_t>>& types_and_offsets) {
  RawFile file{.data_bytes = 96};
  for (const auto& [type, offset] : types_and_offsets) {
    file.tensor(std::to_string(offset), {32}, type, offset);
  }
  return file.bytes();
}

Bytes cut(Bytes bytes, size_t size) {
  bytes.resize(size);
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_gguf_corpus <directory>\n");
    return 2;
  }
  const std::string at = std::string(argv[1]) + "/";
  const auto nested = [](uint32_t depth) {
    return RawFile().key("k", ValueType::kArray, nested_arrays(depth)).bytes();
  };
  const bool good =
      save(at + "valid-v3", sample_model()) &&
      save(at + "valid-v2", sample_model({.version = 2})) &&
      save(at + "valid-aligned-8", sample_model({.alignment = 8})) &&
      save(at + "valid-no-tensors", RawFile().key("k", ValueType::kU8, "\1").bytes()) &&
      save(at + "valid-nested", nested(kMaxArrayDepth)) &&
      save(at + "bad-nested", nested(kMaxArrayDepth + 1)) &&
      save(at + "bad-part", part_of_split()) &&
      save(at + "bad-version", sample_model({.version = 1})) &&
      save(at + "bad-overlap", with_tensors({{8, 0}, {8, 32}})) &&
      save(at + "bad-types", with_tensors({{139, 0}, {4, 32}})) &&
      save(at + "bad-offset", with_tensors({{8, 1}, {8, ~uint64_t{31}}})) &&
      save(at + "bad-cut-header", cut(sample_model(), 300)) &&
      save(at + "bad-cut-data", cut(sample_model(), 1200)) &&
      save(at + "bad-count", RawFile{.tensor_count = ~uint64_t{0}}.bytes());
  if (!good) std::fprintf(stderr, "cannot write to %s\n", argv[1]);
  return good ? 0 : 1;
}
