#include "model/vocabulary.h"

#include "base/strings.h"

namespace topknot::model {
namespace {

constexpr std::string_view kPrefix = "tokenizer.ggml.";

class VocabularyReader {
 public:
  explicit VocabularyReader(const gguf::ModelFile& file) : file_(file) {}

  Result<tokenizer::TokenizerData> read() {
    tokenizer::TokenizerData data;
    data.model = text("model");
    data.pre = text("pre");
    data.tokens = strings("tokens");
    data.merges = strings("merges");
    read_types(&data);
    data.bos = id("bos_token_id");
    data.eos = id("eos_token_id");
    data.eot = id("eot_token_id");
    data.eom = id("eom_token_id");
    data.unk = id("unknown_token_id");
    data.pad = id("padding_token_id");
    data.add_bos = flag("add_bos_token");
    data.add_eos = flag("add_eos_token").value_or(false);
    if (problems_.empty()) return data;
    return Error{.code = Code::kCorrupt,
                 .what = "the file's tokenizer cannot be used",
                 .where = file_.path(),
                 .why = problems_,
                 .fix = "convert the model again: its tokenizer belongs into the GGUF"};
  }

 private:
  const gguf::Value* find(std::string_view key) const { return file_.find_key(cat(kPrefix, key)); }

  void problem(std::string_view key, std::string_view needed) {
    const gguf::Value* value = find(key);
    problems_ += cat(problems_.empty() ? "" : "\n", kPrefix, key, " is ",
                     value == nullptr ? "absent" : value->to_string(), "; needed: ", needed);
  }

  std::string text(std::string_view key) {
    const gguf::Value* value = find(key);
    const auto string = value != nullptr ? value->as_string() : std::nullopt;
    if (!string) problem(key, "a string");
    return std::string(string.value_or(""));
  }

  std::vector<std::string_view> strings(std::string_view key) {
    const gguf::Value* value = find(key);
    const gguf::Array* array = value != nullptr ? value->as_array() : nullptr;
    if (array == nullptr || array->element_type != gguf::ValueType::kString) {
      problem(key, "an array of strings");
      return {};
    }
    return array->strings;
  }

  void read_types(tokenizer::TokenizerData* data) {
    const gguf::Value* value = find("token_type");
    if (value == nullptr) return;
    const gguf::Array* array = value->as_array();
    if (array == nullptr || array->count != data->tokens.size()) {
      problem("token_type", cat("an array of ", data->tokens.size(), " integers"));
      return;
    }
    for (uint64_t i = 0; i < array->count; ++i) {
      const auto type = gguf::Value::element_unsigned(*array, i);
      if (!type || *type < 1 || *type > 6) {
        problem("token_type", cat("integers 1 to 6, also at index ", i));
        return;
      }
      data->types.push_back(static_cast<tokenizer::TokenType>(*type));
    }
  }

  std::optional<int32_t> id(std::string_view key) {
    const gguf::Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    const auto number = value->as_unsigned();
    // Some converters write the largest id for "none".
    if (number && *number == 0xFFFF'FFFFu) return std::nullopt;
    if (!number || *number > tokenizer::kMaxTokens) {
      problem(key, "a token id");
      return std::nullopt;
    }
    return static_cast<int32_t>(*number);
  }

  std::optional<bool> flag(std::string_view key) {
    const gguf::Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    const auto boolean = value->as_bool();
    if (!boolean) problem(key, "true or false");
    return boolean;
  }

  const gguf::ModelFile& file_;
  std::string problems_;
};

}  // namespace

Result<tokenizer::Tokenizer> read_tokenizer(const gguf::ModelFile& file) {
  auto data = VocabularyReader(file).read();
  if (!data) return std::move(data).error();
  auto made = tokenizer::Tokenizer::create(*std::move(data));
  if (!made && made.error().where.empty()) made.error().where = file.path();
  return made;
}

std::optional<std::string> read_chat_template(const gguf::ModelFile& file) {
  const gguf::Value* value = file.find_key("tokenizer.chat_template");
  const auto text = value != nullptr ? value->as_string() : std::nullopt;
  if (!text) return std::nullopt;
  return std::string(*text);
}

}  // namespace topknot::model
