// The syntax tree of a template. Immutable once parsed, so that one Template renders on many
// threads.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "chat/runtime.h"

namespace topknot::chat {

struct FilterEntry;     // filters.h
struct PredicateEntry;  // predicates.h

enum class ExprKind : uint8_t {
  kConstant,     // constant
  kName,         // symbol
  kList,         // items
  kTuple,        // items
  kDict,         // items: key, value, key, value ...
  kAttribute,    // items[0] . name
  kItem,         // items[0] [ items[1] ]
  kSlice,        // items[0] [ items[1] : items[2] : items[3] ], absent ones null
  kCall,         // items[0] ( arguments )
  kFilter,       // items[0] | filter; items[0] is null for the text of a block
  kTest,         // items[0] is predicate
  kNot,          // items[0]
  kNegate,       // items[0]
  kPlus,         // items[0]
  kBinary,       // items[0] op items[1], arithmetic
  kConcat,       // items joined by ~
  kAnd,          // items[0], items[1]
  kOr,           // items[0], items[1]
  kCompare,      // items[0] compares[0] items[1] compares[1] items[2] ...
  kConditional,  // items[0] if items[1] else items[2]; items[2] may be null
};

enum class Arithmetic : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower
};
enum class Comparison : uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> keywords;
  ExprPtr splat;          // *args
  ExprPtr keyword_splat;  // **kwargs
};

struct Expr {
  ExprKind kind = ExprKind::kConstant;
  Position at;
  int depth = 1;  // of the tree below, at most kMaxSyntaxDepth
  Arithmetic arithmetic = Arithmetic::kAdd;
  int symbol = -1;
  std::string name;
  Value constant;
  std::vector<ExprPtr> items;
  std::vector<Comparison> compares;
  CallArguments arguments;
  const FilterEntry* filter = nullptr;
  const PredicateEntry* predicate = nullptr;
};

struct Target {  // of set, for and with
  Position at;
  int symbol = -1;            // a name, or the namespace of `name.attribute`
  std::string attribute;      // empty for a plain name
  std::vector<Target> items;  // a tuple, when `tuple`
  bool tuple = false;
};

enum class NodeKind : uint8_t {
  kText,        // text
  kOutput,      // exprs, each printed
  kIf,          // exprs[i] guards bodies[i]; one more body is the else
  kFor,         // target in exprs[0] if exprs[1]; bodies[0], else bodies[1]
  kSet,         // target = exprs[0]
  kSetBlock,    // target = bodies[0] through exprs[0], which may be null
  kWith,        // targets[i] = exprs[i], for bodies[0]
  kFilter,      // bodies[0] through exprs[0]
  kMacro,       // macro
  kCall,        // exprs[0] is the call, macro its caller
  kGeneration,  // bodies[0]
  kBreak,
  kContinue,
};

struct Node;
using Body = std::vector<std::unique_ptr<Node>>;

struct MacroDefinition {
  std::string name;  // empty for the body of a call block
  int symbol = -1;
  std::vector<std::pair<int, std::string>> parameters;
  std::vector<ExprPtr> defaults;  // of the last parameters
  Body body;
  bool uses_caller = false, uses_varargs = false,
       uses_kwargs = false;  // read in the body, not declared
};

struct Node {
  NodeKind kind = NodeKind::kText;
  Position at;
  Value text;
  std::vector<ExprPtr> exprs;
  std::vector<Target> targets;
  std::vector<Body> bodies;
  std::unique_ptr<MacroDefinition> macro;
};

struct Program {
  std::string name;
  std::vector<std::string> symbols;  // names, by number
  std::unordered_map<std::string, int> symbol_of;
  Body body;

  int intern(const std::string& symbol) {
    const auto [place, added] = symbol_of.emplace(symbol, static_cast<int>(symbols.size()));
    if (added) symbols.push_back(symbol);
    return place->second;
  }
};

}  // namespace topknot::chat
