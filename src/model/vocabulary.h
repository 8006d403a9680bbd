// The tokenizer and chat template that a GGUF file carries: nothing else is needed to run it.
#pragma once

#include <optional>
#include <string>

#include "gguf/model_file.h"
#include "tokenizer/tokenizer.h"
#include "topknot/error.h"

namespace topknot::model {

// From the tokenizer.ggml.* keys. The file must outlive the tokenizer.
Result<tokenizer::Tokenizer> read_tokenizer(const gguf::ModelFile& file);

// tokenizer.chat_template, if the file has one.
std::optional<std::string> read_chat_template(const gguf::ModelFile& file);

}  // namespace topknot::model
