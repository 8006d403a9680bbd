// Any bytes as a GGUF file: refused, or everything in it can be read.
#include "gguf/model_file.h"
#include "gguf/test_support.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using topknot::gguf::ModelFile;
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto model = ModelFile::from_memory(bytes, "fuzz.gguf");
  if (model) {
    volatile uint64_t sum = topknot::gguf::read_everything(*model);
    static_cast<void>(sum);
  } else if (model.error().why.empty() || model.error().to_string().size() > 100'000) {
    __builtin_trap();  // a refusal gives a reason, and a bounded one
  }
  return 0;
}
