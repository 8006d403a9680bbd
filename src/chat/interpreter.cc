// Statements, scopes and output.
#include "chat/interpreter.h"

#include <algorithm>

#include "chat/operators.h"

namespace topknot::chat {

Interpreter::Interpreter(const Program& program, Runtime* runtime)
    : program_(program), runtime_(*runtime), scope_(std::make_shared<Scope>()) {
  static const std::pair<const char*, Builtin> kGlobals[] = {
      {"range", Builtin::kRange},
      {"namespace", Builtin::kNamespace},
      {"dict", Builtin::kDict},
      {"raise_exception", Builtin::kRaiseException},
      {"strftime_now", Builtin::kStrftimeNow},
      {"cycler", Builtin::kCycler},
      {"joiner", Builtin::kJoiner}};
  for (const auto& [name, builtin] : kGlobals) set_variable(name, Value(builtin));
  scope_ = enter_scope();  // the template's own variables shadow these
}

Interpreter::~Interpreter() {
  for (const ScopePtr& scope : captured_) scope->variables.clear();
}

void Interpreter::set_variable(const std::string& name, Value value) {
  const auto found = program_.symbol_of.find(name);
  if (found != program_.symbol_of.end()) set_symbol(found->second, std::move(value));
}

Text Interpreter::render() {
  Text out;
  out_ = &out;
  run_body(program_.body);
  return out;
}

void Interpreter::enter() {
  if (++depth_ > runtime_.limits.max_depth) {
    --depth_;
    fail_limit("calls and expressions nest more than ", runtime_.limits.max_depth, " deep");
  }
  runtime_.ledger.step();
}

Interpreter::ScopePtr Interpreter::enter_scope() {
  auto scope = std::make_shared<Scope>();
  scope->parent = scope_;
  return scope;
}

void Interpreter::set_symbol(int symbol, Value value) {
  for (auto& [name, held] : scope_->variables) {
    if (name != symbol) continue;
    held = std::move(value);
    return;
  }
  scope_->variables.emplace_back(symbol, std::move(value));
}

Value Interpreter::lookup(int symbol) {
  size_t visited = 0;
  for (const Scope* scope = scope_.get(); scope != nullptr; scope = scope->parent.get()) {
    for (const auto& [name, value] : scope->variables) {
      if (name == symbol) return value;
    }
    visited += 1 + scope->variables.size() / 8;
  }
  runtime_.ledger.step(visited);
  return Value::undefined(
      cat("'", program_.symbols[static_cast<size_t>(symbol)], "' is undefined"));
}

void Interpreter::emit(const Text& text) {
  if (out_->size() + text.size() > runtime_.limits.max_output_bytes) {
    fail_limit("it printed more than ", human_bytes(runtime_.limits.max_output_bytes));
  }
  runtime_.ledger.acquire(text.size());
  out_->append(text);
}

Interpreter::Flow Interpreter::run_body(const Body& body) {
  for (const auto& node : body) {
    if (const Flow flow = run(*node); flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run(const Node& node) {
  const Depth depth(this);
  at_ = node.at;
  switch (node.kind) {
    case NodeKind::kText: emit(node.text.text()); return Flow::kNext;
    case NodeKind::kOutput:
      for (const ExprPtr& expr : node.exprs) emit(runtime_.to_text(evaluate(*expr)));
      return Flow::kNext;
    case NodeKind::kIf: return run_if(node);
    case NodeKind::kFor: return run_for(node);
    case NodeKind::kSet:
      check_namespaces(node.targets[0]);
      assign(node.targets[0], evaluate(*node.exprs[0]));
      return Flow::kNext;
    case NodeKind::kSetBlock: return run_set_block(node);
    case NodeKind::kWith: return run_with(node);
    case NodeKind::kFilter: return run_filter(node);
    case NodeKind::kMacro:
      set_symbol(node.macro->symbol, make_macro(*node.macro));
      return Flow::kNext;
    case NodeKind::kCall: run_call(node); return Flow::kNext;
    case NodeKind::kGeneration: return run_scoped(node.bodies[0]);
    case NodeKind::kBreak: return Flow::kBreak;
    case NodeKind::kContinue: return Flow::kContinue;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run_if(const Node& node) {
  for (size_t i = 0; i < node.exprs.size(); ++i) {
    if (truth(evaluate(*node.exprs[i]))) return run_body(node.bodies[i]);
  }
  return node.bodies.size() > node.exprs.size() ? run_body(node.bodies.back()) : Flow::kNext;
}

std::vector<Value> Interpreter::loop_items(const Node& node) {
  const Value iterable = evaluate(*node.exprs[0]);
  std::vector<Value> items = runtime_.items_of(iterable);
  if (node.exprs[1] == nullptr) return items;
  std::vector<Value> kept;
  const ScopePtr outer = scope_;
  for (Value& item : items) {
    scope_ = outer;
    scope_ = enter_scope();
    assign(node.targets[0], item);
    if (truth(evaluate(*node.exprs[1]))) kept.push_back(std::move(item));
  }
  scope_ = outer;
  return kept;
}

Interpreter::Flow Interpreter::run_for(const Node& node) {
  const std::shared_ptr<LoopState> loop = runtime_.loop(loop_items(node));
  const auto loop_symbol = program_.symbol_of.find("loop");
  const ScopePtr outer = scope_;
  // As in jinja2, only an iteration that ran to its end keeps the else branch from running.
  bool completed = false;
  for (loop->index = 0; loop->index < loop->items.size(); ++loop->index) {
    runtime_.ledger.step();
    scope_ = outer;
    scope_ = enter_scope();
    if (loop_symbol != program_.symbol_of.end()) set_symbol(loop_symbol->second, Value(loop));
    assign(node.targets[0], loop->items[loop->index]);
    const Flow flow = run_body(node.bodies[0]);
    if (flow == Flow::kBreak) break;
    completed = completed || flow == Flow::kNext;
  }
  scope_ = outer;
  loop->running = false;
  loop->last_changed.reset();  // it may hold the loop
  if (completed || node.bodies.size() < 2) return Flow::kNext;
  return run_scoped(node.bodies[1]);
}

Interpreter::Flow Interpreter::run_scoped(const Body& body) {
  const ScopePtr outer = scope_;
  scope_ = enter_scope();
  const Flow flow = run_body(body);
  scope_ = outer;
  return flow;
}

Interpreter::Flow Interpreter::run_with(const Node& node) {
  const ScopePtr outer = scope_;
  const ScopePtr inner = enter_scope();
  for (size_t i = 0; i < node.targets.size(); ++i) {
    const Value value = evaluate(*node.exprs[i]);
    scope_ = inner;
    assign(node.targets[i], value);
    scope_ = outer;
  }
  scope_ = inner;
  const Flow flow = run_body(node.bodies[0]);
  scope_ = outer;
  return flow;
}

Interpreter::Flow Interpreter::run_filter(const Node& node) {
  Value text;
  {
    Capture capture(this);
    const Flow flow = run_scoped(node.bodies[0]);
    if (flow != Flow::kNext) return flow;  // what was printed goes with the block, as in jinja2
    text = runtime_.string(capture.text);
  }
  emit(runtime_.to_text(apply_filters_to_text(*node.exprs[0], text)));
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run_set_block(const Node& node) {
  Value value;
  {
    Capture capture(this);
    const Flow flow = run_scoped(node.bodies[0]);
    if (flow != Flow::kNext) return flow;
    value = runtime_.string(capture.text);
  }
  if (node.exprs[0] != nullptr) value = apply_filters_to_text(*node.exprs[0], value);
  check_namespaces(node.targets[0]);
  assign(node.targets[0], value);
  return Flow::kNext;
}

void Interpreter::run_call(const Node& node) {
  const Value caller = make_macro(*node.macro);
  emit(runtime_.to_text(evaluate_call(*node.exprs[0], &caller)));
}

Value Interpreter::make_macro(const MacroDefinition& definition) {
  auto macro = std::make_shared<Macro>();
  runtime_.adopt(macro.get(), sizeof(Macro) + sizeof(Scope), 0);
  macro->definition = &definition;
  macro->scope = scope_.get();
  if (captured_.empty() || captured_.back() != scope_) captured_.push_back(scope_);
  return Value(std::shared_ptr<const Macro>(std::move(macro)));
}

void Interpreter::check_namespaces(const Target& target) {
  if (!target.attribute.empty() && !lookup(target.symbol).is(Kind::kNamespace)) {
    at_ = target.at;
    fail_value("'", program_.symbols[static_cast<size_t>(target.symbol)], ".", target.attribute,
               "' cannot be assigned: only namespaces can");
  }
  for (const Target& item : target.items) check_namespaces(item);
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (target.tuple) {
    if (!runtime_.is_iterable(value)) fail_value("a ", type_name(value), " cannot be unpacked");
    const std::vector<Value> items = runtime_.items_of(value);
    if (items.size() != target.items.size()) {
      fail_value(items.size(), " values cannot be unpacked into ", target.items.size(), " names");
    }
    for (size_t i = 0; i < items.size(); ++i) assign(target.items[i], items[i]);
    return;
  }
  if (target.attribute.empty()) return set_symbol(target.symbol, value);
  const Value held = lookup(target.symbol);
  if (!held.is(Kind::kNamespace))
    fail_value("only namespaces have attributes that can be assigned");
  auto& attributes = held.get<Namespace*>()->attributes;
  const auto place =
      std::find_if(attributes.begin(), attributes.end(),
                   [&target](const auto& entry) { return entry.first == target.attribute; });
  if (place != attributes.end()) {
    place->second = value;
  } else {
    attributes.emplace_back(target.attribute, value);
  }
}

std::string macro_name(const Value& macro) {
  const std::string& name = macro.get<std::shared_ptr<const Macro>>()->definition->name;
  return name.empty() ? "anonymous" : cat("'", name, "'");
}

}  // namespace topknot::chat
