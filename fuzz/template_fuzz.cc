// Any bytes as a chat template, rendered with a conversation that has every kind of value. What
// comes after a NUL byte is taken as JSON variables that are added to it.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "chat/prompt.h"

namespace {

using Json = nlohmann::ordered_json;

const Json& base_messages() {
  static const Json messages = Json::parse(R"([
    {"role": "system", "content": "Be <|user|> brief é😀"},
    {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image", "image": "x"}]},
    {"role": "assistant", "content": "<ponder>\nr\n</ponder>\n\nb", "reasoning_content": null,
     "tool_calls": [
       {"id": "f#0", "type": "function",
        "function": {"name": "f", "arguments": {"k": "v", "n": 1.5, "l": [1, true, null]}}}]},
    {"role": "tool", "content": "{\"t\": 21}"}])");
  return messages;
}

topknot::chat::RenderLimits small_limits() {
  topknot::chat::RenderLimits limits;
  limits.max_steps = 200'000;  // so that one input takes milliseconds
  limits.max_output_bytes = 1 << 20;
  limits.max_live_bytes = 16 << 20;
  return limits;
}

// The segments must be what the header promises.
void check(const topknot::chat::Rendered& rendered) {
  for (size_t i = 0; i < rendered.segments.size(); ++i) {
    if (rendered.segments[i].text.empty()) std::abort();
    if (i > 0 && rendered.segments[i].trusted == rendered.segments[i - 1].trusted) std::abort();
  }
  if (topknot::find_invalid_utf8(rendered.text()) != std::string_view::npos) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t nul = bytes.find('\0');
  auto parsed = topknot::chat::Template::parse(bytes.substr(0, nul), "fuzz");
  if (!parsed) {
    if (parsed.error().why.empty()) std::abort();
    return 0;
  }
  topknot::chat::PromptOptions options;
  options.bos_token = "<s>";
  options.limits = small_limits();
  options.clock = [] { return std::tm{.tm_mday = 1, .tm_year = 125}; };
  if (nul != std::string_view::npos) {
    options.template_kwargs = Json::parse(bytes.substr(nul + 1), nullptr, false);
    if (options.template_kwargs.is_discarded()) options.template_kwargs = nullptr;
  }
  const Json tools = Json::array({{{"type", "function"}, {"function", {{"name", "f"}}}}});
  const auto rendered = topknot::chat::render_chat(*parsed, base_messages(), tools, options);
  if (rendered) check(*rendered);
  return 0;
}
