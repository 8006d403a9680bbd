// A conversation in the OpenAI form, rendered by a model's chat template.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "chat/template.h"

namespace topknot::chat {

inline constexpr size_t kMaxMessages = 100'000;
inline constexpr size_t kMaxTools = 10'000;

struct PromptOptions {
  bool add_generation_prompt = true;
  // Texts of the tokenizer's special tokens; templates print them, so they are trusted.
  std::string bos_token, eos_token, pad_token, unk_token;
  nlohmann::ordered_json documents;  // null, or an array
  nlohmann::ordered_json
      template_kwargs;  // null, or an object: enable_thinking, clear_thinking ...
  RenderLimits limits;
  Clock clock;
};

// `messages`: an array of objects, each with a string `role`. `tools`: null or an array of objects.
// kInvalidArgument, naming the message, for anything else, and for a template_kwargs entry that
// would replace one of these. Note that most templates drop the reasoning of earlier turns, which
// changes the prompt's earlier tokens and defeats prefix reuse; GLM's keep it with clear_thinking =
// false.
Result<Rendered> render_chat(const Template& chat_template, const nlohmann::ordered_json& messages,
                             const nlohmann::ordered_json& tools,
                             const PromptOptions& options = {});

}  // namespace topknot::chat
