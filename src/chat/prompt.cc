#include "chat/prompt.h"

namespace topknot::chat {
namespace {

using Json = nlohmann::ordered_json;

Error malformed(std::string what, std::string where, std::string why, std::string fix) {
  return Error{.code = Code::kInvalidArgument,
               .what = std::move(what),
               .where = std::move(where),
               .why = std::move(why),
               .fix = std::move(fix)};
}

Status check_count(const char* name, size_t count, size_t most) {
  if (count <= most) return {};
  return Error{.code = Code::kOutOfRange,
               .what = cat("too many ", name),
               .where = name,
               .why = cat(count, " given, at most ", most, " accepted"),
               .fix = "shorten the request"};
}

Status check_messages(const Json& messages) {
  if (!messages.is_array()) {
    return malformed("the messages are not an array", "messages",
                     cat("found a ", messages.type_name()),
                     "pass an array of objects with role and content");
  }
  if (messages.empty())
    return malformed("there are no messages", "messages", "the array is empty",
                     "pass at least one message");
  if (auto counted = check_count("messages", messages.size(), kMaxMessages); !counted)
    return counted;
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string where = cat("messages[", i, "]");
    if (!messages[i].is_object()) {
      return malformed("a message is not an object", where,
                       cat("found a ", messages[i].type_name()), "give it role and content");
    }
    const auto role = messages[i].find("role");
    if (role == messages[i].end())
      return malformed("a message has no role", where, "'role' is missing",
                       "add system, user, assistant or tool");
    if (!role->is_string()) {
      return malformed("a message's role is not a string", where,
                       cat("found a ", role->type_name()), "use system, user, assistant or tool");
    }
  }
  return {};
}

Status check_objects(const char* name, const Json& list) {
  if (list.is_null()) return {};
  if (!list.is_array())
    return malformed(cat(name, " is not an array"), name, cat("found a ", list.type_name()),
                     "pass an array of objects");
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].is_object()) continue;
    return malformed(cat("an entry of ", name, " is not an object"), cat(name, "[", i, "]"),
                     cat("found a ", list[i].type_name()), "pass an array of objects");
  }
  return check_count(name, list.size(), kMaxTools);
}

Status add_kwargs(const Json& kwargs, Json* variables) {
  if (kwargs.is_null()) return {};
  if (!kwargs.is_object()) {
    return malformed("chat_template_kwargs is not an object", "chat_template_kwargs",
                     cat("found a ", kwargs.type_name()), "pass an object");
  }
  for (const auto& [key, value] : kwargs.items()) {
    if (variables->contains(key)) {
      return malformed(cat("chat_template_kwargs cannot set '", printable(key), "'"),
                       "chat_template_kwargs", "the request itself sets it", "remove it");
    }
    (*variables)[key] = value;
  }
  return {};
}

}  // namespace

Result<Rendered> render_chat(const Template& chat_template, const Json& messages, const Json& tools,
                             const PromptOptions& options) {
  if (auto checked = check_messages(messages); !checked) return std::move(checked).error();
  if (auto checked = check_objects("tools", tools); !checked) return std::move(checked).error();
  if (auto checked = check_objects("documents", options.documents); !checked)
    return std::move(checked).error();
  Json variables = {{"bos_token", options.bos_token},
                    {"eos_token", options.eos_token},
                    {"pad_token", options.pad_token},
                    {"unk_token", options.unk_token}};
  variables["messages"] = messages;
  // No tools and an empty list are one to a template's `if tools`, and not to `tools is not none`.
  variables["tools"] = tools.is_array() && tools.empty() ? Json(nullptr) : tools;
  variables["documents"] = options.documents;
  variables["add_generation_prompt"] = options.add_generation_prompt;
  if (auto added = add_kwargs(options.template_kwargs, &variables); !added)
    return std::move(added).error();
  RenderOptions render;
  render.limits = options.limits;
  render.clock = options.clock;
  render.trusted_variables = {"bos_token", "eos_token", "pad_token", "unk_token"};
  return chat_template.render(variables, render);
}

}  // namespace topknot::chat
