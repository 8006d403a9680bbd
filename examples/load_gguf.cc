// Opens a GGUF model, split or not: what it is, how its tensors lie, and one row decoded to fp32.
//   load_gguf MODEL.gguf [TENSOR]
#include <topknot/gguf.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace {

int fail(const topknot::Error& error) {
  std::fprintf(stderr, "error: %s\n", error.to_string().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: load_gguf MODEL.gguf [TENSOR]\n");
    return 2;
  }
  const auto model = topknot::GgufModel::open(argv[1]);
  if (!model) return fail(model.error());
  const auto architecture = model->text("general.architecture");
  if (!architecture) return fail(architecture.error());
  const auto layers = model->integer(std::string(*architecture) + ".block_count");
  if (!layers) return fail(layers.error());
  std::printf("%s, %lld layers, %zu keys, %zu tensors in %zu files\n",
              std::string(*architecture).c_str(), static_cast<long long>(*layers),
              model->keys().size(), model->tensors().size(), model->parts().size());

  std::map<std::string, uint64_t> bytes_of_type;
  for (const auto& tensor : model->tensors())
    bytes_of_type[std::string(tensor.type)] += tensor.bytes;
  for (const auto& [type, bytes] : bytes_of_type) {
    std::printf("  %-8s %14llu bytes\n", type.c_str(), static_cast<unsigned long long>(bytes));
  }

  const auto found = model->tensor(argc > 2 ? argv[2] : "token_embd.weight");
  if (!found) return fail(found.error());
  const topknot::GgufTensor& tensor = **found;
  std::printf("%s %s [", std::string(tensor.name).c_str(), std::string(tensor.type).c_str());
  for (const uint64_t size : tensor.shape) {
    std::printf(" %llu", static_cast<unsigned long long>(size));
  }
  std::printf(" ], row 0:");
  std::vector<float> row(tensor.row_elements);
  if (const auto done = model->decode_rows(tensor.name, 0, row); !done) return fail(done.error());
  for (size_t i = 0; i < row.size() && i < 4; ++i) std::printf(" %g", static_cast<double>(row[i]));
  std::printf(" ...\n");
  return 0;
}
