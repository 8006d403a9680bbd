// A macro or a call block's body, with the variables it can see.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chat/value.h"

namespace topknot::chat {

struct MacroDefinition;

// Variables of one frame: the template, an iteration, a macro call, a block. Names are numbers of
// Program::symbols; frames are small, so they are searched from the end.
struct Scope : std::enable_shared_from_this<Scope> {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<int, Value>> variables;
};

struct Macro : Object {
  const MacroDefinition* definition = nullptr;
  // Kept alive by the interpreter: the scope may hold the macro, and must not own itself.
  Scope* scope = nullptr;
};

std::string macro_name(const Value& macro);  // quoted, or "anonymous"

}  // namespace topknot::chat
