#include "synth/vocabulary.h"

#include <algorithm>
#include <unordered_set>

#include "base/assert.h"
#include "base/strings.h"
#include "tokenizer/byte_alphabet.h"

namespace topknot::synth {
namespace {

// Values of tokenizer.ggml.token_type.
constexpr int32_t kNormal = 1;
constexpr int32_t kControl = 3;
constexpr int32_t kUserDefined = 4;
constexpr int32_t kUnused = 5;

struct Special {
  std::string_view text;
  int32_t type = kControl;
};

struct Named {
  std::string_view key;
  std::string_view text;
};

// What a family's vocabulary has besides the bytes and what merges make.
struct Family {
  std::string_view pre;
  std::span<const Special> head;  // before the byte tokens
  std::span<const Special> tail;
  int64_t published_size;
  int64_t published_tail;  // id of the first of `tail` at that size
  std::span<const Named> named;
  std::optional<bool> add_bos;
  std::string_view chat_template;
};

// Published ids: tokenizer.md section 4. Ids between are filled with placeholders.
constexpr Special kGlmTail[] = {
    {"<|endoftext|>"},
    {"[MASK]"},
    {"[gMASK]"},
    {"[sMASK]"},
    {"<sop>"},
    {"<eop>"},
    {"<|system|>"},
    {"<|user|>"},
    {"<|assistant|>"},
    {"<|observation|>"},
    {"<|begin_of_image|>"},
    {"<|end_of_image|>"},
    {"<|begin_of_video|>"},
    {"<|end_of_video|>"},
    {"<|begin_of_audio|>"},
    {"<|end_of_audio|>"},
    {"<|begin_of_transcription|>"},
    {"<|end_of_transcription|>"},
    {"<|code_prefix|>"},
    {"<|code_middle|>"},
    {"<|code_suffix|>"},
    {"<think>", kUserDefined},
    {"</think>", kUserDefined},
    {"<tool_call>", kUserDefined},
    {"</tool_call>", kUserDefined},
    {"<tool_response>", kUserDefined},
    {"</tool_response>", kUserDefined},
    {"<arg_key>", kUserDefined},
    {"</arg_key>", kUserDefined},
    {"<arg_value>", kUserDefined},
    {"</arg_value>", kUserDefined},
};

constexpr Special kDeepSeekV3Head[] = {
    {"<｜begin▁of▁sentence｜>"}, {"<｜end▁of▁sentence｜>"}, {"<｜▁pad▁｜>"}};
constexpr Special kDeepSeekV3Tail[] = {
    {"<think>", kUserDefined},
    {"</think>", kUserDefined},
    {"<｜fim▁hole｜>"},
    {"<｜fim▁begin｜>"},
    {"<｜fim▁end｜>"},
    {"<｜User｜>"},
    {"<｜Assistant｜>"},
    {"<|EOT|>"},
    {"<｜tool▁calls▁begin｜>", kUserDefined},
    {"<｜tool▁calls▁end｜>", kUserDefined},
    {"<｜tool▁call▁begin｜>", kUserDefined},
    {"<｜tool▁call▁end｜>", kUserDefined},
    {"<｜tool▁outputs▁begin｜>", kUserDefined},
    {"<｜tool▁outputs▁end｜>", kUserDefined},
    {"<｜tool▁output▁begin｜>", kUserDefined},
    {"<｜tool▁output▁end｜>", kUserDefined},
    {"<｜tool▁sep｜>", kUserDefined},
};

constexpr Special kDeepSeekLlmTail[] = {
    {"<｜begin▁of▁sentence｜>"},
    {"<｜end▁of▁sentence｜>"},
    {"<｜fim▁hole｜>"},
    {"<｜fim▁begin｜>"},
    {"<｜fim▁end｜>"},
    {"<｜completion｜>"},
    {"<｜User｜>"},
    {"<｜Assistant｜>"},
    {"<|EOT|>"},
};

// An empty text is an id the family leaves open.
constexpr Special kKimiTail[] = {
    {"[BOS]"},
    {"[EOS]"},
    {"<|im_end|>"},
    {"<|im_user|>"},
    {"<|im_assistant|>"},
    {""},
    {"<|start_header_id|>"},
    {"<|end_header_id|>"},
    {""},
    {"[EOT]"},
    {"<|im_system|>"},
    {"<|tool_calls_section_begin|>", kUserDefined},
    {"<|tool_calls_section_end|>", kUserDefined},
    {"<|tool_call_begin|>", kUserDefined},
    {"<|tool_call_argument_begin|>", kUserDefined},
    {"<|tool_call_end|>", kUserDefined},
    {""},
    {"<|im_middle|>"},
};

constexpr std::string_view kGlmTemplate =
    "[gMASK]<sop>{% for m in messages %}"
    "{% if m['role'] == 'tool' %}<|observation|><tool_response>{{ m['content'] }}</tool_response>"
    "{% else %}<|{{ m['role'] }}|>{{ m['content'] }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|></think>{% endif %}";

constexpr std::string_view kDeepSeekTemplate =
    "<｜begin▁of▁sentence｜>{% for m in messages %}"
    "{% if m['role'] == 'user' %}<｜User｜>{{ m['content'] }}"
    "{% elif m['role'] == 'assistant' %}<｜Assistant｜>{{ m['content'] }}<｜end▁of▁sentence｜>"
    "{% else %}{{ m['content'] }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<｜Assistant｜>{% endif %}";

constexpr std::string_view kKimiTemplate =
    "{% for m in messages %}<|im_{{ m['role'] }}|>{{ m['role'] }}<|im_middle|>{{ m['content'] }}"
    "<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_assistant|>assistant<|im_middle|>{% endif %}";

constexpr Named kGlmNamed[] = {
    {"eos_token_id", "<|endoftext|>"},     {"padding_token_id", "[MASK]"},
    {"bos_token_id", "[gMASK]"},           {"eot_token_id", "<|user|>"},
    {"unknown_token_id", "<|endoftext|>"}, {"eom_token_id", "<|observation|>"},
};
constexpr Named kDeepSeekV3Named[] = {
    {"bos_token_id", "<｜begin▁of▁sentence｜>"},
    {"eos_token_id", "<｜end▁of▁sentence｜>"},
    {"padding_token_id", "<｜▁pad▁｜>"},
};
constexpr Named kDeepSeekLlmNamed[] = {
    {"bos_token_id", "<｜begin▁of▁sentence｜>"},
    {"eos_token_id", "<｜end▁of▁sentence｜>"},
    {"padding_token_id", "<｜end▁of▁sentence｜>"},
};
constexpr Named kKimiNamed[] = {
    {"bos_token_id", "[BOS]"},
    {"eos_token_id", "[EOS]"},
    {"eot_token_id", "<|im_end|>"},
    {"padding_token_id", "[EOS]"},
};

constexpr Family kFamilies[] = {
    {.pre = "glm4",
     .head = {},
     .tail = kGlmTail,
     .published_size = 154'880,
     .published_tail = 154'820,
     .named = kGlmNamed,
     .add_bos = {},
     .chat_template = kGlmTemplate},
    {.pre = "deepseek-v3",
     .head = kDeepSeekV3Head,
     .tail = kDeepSeekV3Tail,
     .published_size = 129'280,
     .published_tail = 128'798,
     .named = kDeepSeekV3Named,
     .add_bos = true,
     .chat_template = kDeepSeekTemplate},
    {.pre = "deepseek-llm",
     .head = {},
     .tail = kDeepSeekLlmTail,
     .published_size = 102'400,
     .published_tail = 100'000,
     .named = kDeepSeekLlmNamed,
     .add_bos = true,
     .chat_template = kDeepSeekTemplate},
    {.pre = "kimi-k2",
     .head = {},
     .tail = kKimiTail,
     .published_size = 163'840,
     .published_tail = 163'584,
     .named = kKimiNamed,
     .add_bos = false,
     .chat_template = kKimiTemplate},
};

const Family* find_family(std::string_view pre) {
  for (const Family& family : kFamilies) {
    if (family.pre == pre) return &family;
  }
  return nullptr;
}

// Letters by how often English has them, so that small vocabularies hold the likelier pairs.
constexpr std::string_view kLetters = "etaoinshrdlcumwfgypbvkjxqz";

// Grows a vocabulary by merged tokens: all pairs of a space or a letter with a letter, then those
// with one more letter, and so on. Every token is made by its first part and its last letter, and
// from three letters on by its first letter and the rest as well, as published files have it.
class Grower {
 public:
  explicit Grower(Vocabulary* out) : out_(out), space_(tokenizer::bytes_to_alphabet(" ")) {
    level_.push_back(space_);
    for (const char letter : kLetters) level_.emplace_back(1, letter);
  }

  void grow_to(size_t size) {
    while (out_->tokens.size() < size) grow_level(size);
  }

 private:
  void grow_level(size_t size) {
    std::vector<std::string> next;
    for (const std::string& left : level_) {
      for (const char letter : kLetters) {
        if (out_->tokens.size() == size) return;
        add(left, letter, &next);
      }
    }
    level_ = std::move(next);
    ++letters_;
  }

  void add(const std::string& left, char letter, std::vector<std::string>* next) {
    std::string token = left + letter;
    out_->merges.push_back(left + " " + letter);
    const size_t first = token.starts_with(space_) ? space_.size() : 1;
    const std::string rest = token.substr(first);
    if (letters_ > 1 && made_.contains(rest)) {
      out_->merges.push_back(token.substr(0, first) + " " + rest);
    }
    made_.insert(token);
    out_->tokens.push_back(token);
    out_->types.push_back(kNormal);
    next->push_back(std::move(token));
  }

  Vocabulary* out_;
  std::string space_;
  std::vector<std::string> level_;  // what the next level's tokens begin with
  size_t letters_ = 1;              // of those
  std::unordered_set<std::string> made_;
};

void add_specials(std::span<const Special> specials, Vocabulary* out) {
  for (const Special& special : specials) {
    const bool open = special.text.empty();
    out->tokens.push_back(open ? cat("<|reserved_", out->tokens.size(), "|>")
                               : std::string(special.text));
    out->types.push_back(open ? kControl : special.type);
  }
}

// Printable bytes first, in the order of their code points, as GPT-2's vocabulary has them.
void add_bytes(Vocabulary* out) {
  std::vector<uint32_t> points;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    points.push_back(tokenizer::byte_to_code_point(static_cast<uint8_t>(byte)));
  }
  std::sort(points.begin(), points.end());
  for (const uint32_t point : points) {
    append_utf8(&out->tokens.emplace_back(), point);
    out->types.push_back(kNormal);
  }
}

}  // namespace

std::optional<int64_t> min_vocabulary(std::string_view pre) {
  const Family* family = find_family(pre);
  if (family == nullptr) return {};
  return static_cast<int64_t>(256 + family->head.size() + family->tail.size());
}

Vocabulary make_vocabulary(std::string_view pre, int64_t size) {
  const Family* family = find_family(pre);
  TOPKNOT_ASSERT(family != nullptr && size >= min_vocabulary(pre));
  const auto tail = size == family->published_size
                        ? static_cast<size_t>(family->published_tail)
                        : static_cast<size_t>(size) - family->tail.size();
  Vocabulary out;
  out.pre = pre;
  out.tokens.reserve(static_cast<size_t>(size));
  add_specials(family->head, &out);
  add_bytes(&out);
  Grower(&out).grow_to(tail);
  add_specials(family->tail, &out);
  while (out.tokens.size() < static_cast<size_t>(size)) {
    out.tokens.push_back(cat("[PAD", out.tokens.size(), "]"));
    out.types.push_back(kUnused);
  }
  for (const Named& named : family->named) {
    const auto at = std::find(out.tokens.begin(), out.tokens.end(), named.text);
    out.named.push_back({named.key, static_cast<uint32_t>(at - out.tokens.begin())});
  }
  out.add_bos = family->add_bos;
  out.chat_template = family->chat_template;
  return out;
}

void add_vocabulary(const Vocabulary& vocabulary, gguf::MetadataEncoder* metadata) {
  metadata->add_string("tokenizer.ggml.model", "gpt2");
  metadata->add_string("tokenizer.ggml.pre", vocabulary.pre);
  metadata->add_strings("tokenizer.ggml.tokens", vocabulary.tokens);
  metadata->add_array<int32_t>("tokenizer.ggml.token_type", vocabulary.types);
  metadata->add_strings("tokenizer.ggml.merges", vocabulary.merges);
  for (const auto& [key, id] : vocabulary.named) metadata->add(cat("tokenizer.ggml.", key), id);
  if (vocabulary.add_bos) metadata->add("tokenizer.ggml.add_bos_token", *vocabulary.add_bos);
  metadata->add_string("tokenizer.chat_template", vocabulary.chat_template);
}

}  // namespace topknot::synth
