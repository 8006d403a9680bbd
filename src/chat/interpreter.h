// Walks the syntax tree. One Interpreter renders one template once.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "chat/ast.h"
#include "chat/macro.h"

namespace topknot::chat {

class Interpreter {
 public:
  Interpreter(const Program& program, Runtime* runtime);
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  void set_variable(const std::string& name, Value value);
  Text render();
  Position position() const { return at_; }  // of what was evaluated last

 private:
  enum class Flow : uint8_t { kNext, kBreak, kContinue };
  using ScopePtr = std::shared_ptr<Scope>;

  // Statements.
  Flow run_body(const Body& body);
  Flow run(const Node& node);
  Flow run_if(const Node& node);
  Flow run_for(const Node& node);
  std::vector<Value> loop_items(const Node& node);
  Flow run_with(const Node& node);
  Flow run_filter(const Node& node);
  Flow run_set_block(const Node& node);
  Flow run_scoped(const Body& body);
  void run_call(const Node& node);
  void emit(const Text& text);
  void assign(const Target& target, const Value& value);
  void check_namespaces(const Target& target);
  void set_symbol(int symbol, Value value);
  Value lookup(int symbol);
  Value make_macro(const MacroDefinition& definition);
  ScopePtr enter_scope();

  // Expressions (evaluate.cc).
  Value evaluate(const Expr& expr);
  Value evaluate_parts(const Expr& expr);
  Value evaluate_dict(const Expr& expr);
  Value evaluate_compare(const Expr& expr);
  Value evaluate_concat(const Expr& expr);
  Value evaluate_slice(const Expr& expr);
  Value evaluate_conditional(const Expr& expr);
  Value evaluate_call(const Expr& expr, const Value* caller);
  Value apply_filter(const Expr& expr, const Value& value);
  Value apply_filters_to_text(const Expr& expr, const Value& text);
  std::vector<Value> evaluate_all(const std::vector<ExprPtr>& exprs);
  Arguments evaluate_arguments(const CallArguments& arguments);

  // Calls (call.cc).
  Value call(const Value& callee, Arguments arguments);
  Value call_macro(const Macro& macro, Arguments arguments);
  void bind_parameters(const MacroDefinition& definition, Arguments* arguments);
  void bind_specials(const MacroDefinition& definition, Arguments* arguments);
  Value call_builtin(Builtin builtin, const Arguments& arguments);
  Value call_range(const Arguments& arguments);
  Value call_dict(const Arguments& arguments);
  Value call_namespace(const Arguments& arguments);
  Value call_strftime(const Arguments& arguments);

  struct Depth {
    explicit Depth(Interpreter* owner) : interpreter(owner) { interpreter->enter(); }
    ~Depth() { --interpreter->depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    Interpreter* interpreter;
  };
  void enter();

  // Collects what is printed while it lives. The bytes are given back to the ledger with it.
  struct Capture {
    explicit Capture(Interpreter* owner) : interpreter(owner), outer(owner->out_) {
      owner->out_ = &text;
    }
    ~Capture() {
      interpreter->out_ = outer;
      interpreter->runtime_.ledger.release(text.size());
    }
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    Interpreter* interpreter;
    Text* outer;
    Text text;
  };

  const Program& program_;
  Runtime& runtime_;
  ScopePtr scope_;
  Text* out_ = nullptr;
  Position at_;
  int depth_ = 0;
  std::vector<ScopePtr> captured_;  // scopes that a macro refers to
};

}  // namespace topknot::chat
