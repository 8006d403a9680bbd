// Statements.
#include <algorithm>

#include "chat/parser.h"

namespace topknot::chat {

std::unique_ptr<Node> Parser::make_node(NodeKind kind, Position at) {
  auto node = std::make_unique<Node>();
  node->kind = kind;
  node->at = at;
  return node;
}

Body Parser::parse_template() {
  Body body = parse_until({});
  if (current().token != Token::kEnd)
    fail_here(current().at, cat("unexpected ", describe_current()));
  return body;
}

// Stops before the first of `end_words`, behind its '{%'; at the end of the template when there are
// none.
Body Parser::parse_until(Words end_words) {
  const Nesting nesting(this);
  Body body;
  while (current().token != Token::kEnd) {
    const Position at = current().at;
    if (current().token == Token::kData) {
      auto node = make_node(NodeKind::kText, at);
      auto object = std::make_shared<StringObject>();
      object->text = Text(take().text, true);
      node->text = Value(std::shared_ptr<const StringObject>(std::move(object)));
      body.push_back(std::move(node));
    } else if (current().token == Token::kVariableBegin) {
      body.push_back(parse_output());
    } else {
      expect(Token::kBlockBegin, "'{%'");
      const bool ends = std::any_of(end_words.begin(), end_words.end(),
                                    [this](std::string_view word) { return is_name(word); });
      if (ends) return body;
      body.push_back(parse_statement());
      expect(Token::kBlockEnd, "'%}'");
    }
  }
  if (end_words.size() > 0) {
    fail_here(current().at, cat("the template ends before '", *end_words.begin(), "'"));
  }
  return body;
}

// The rest of an opening tag and the body up to one of `end_words`, which is left as the current
// token.
Body Parser::parse_block(Words end_words) {
  skip_operator(":");  // allowed by jinja2, for Python's sake
  expect(Token::kBlockEnd, "'%}'");
  return parse_until(end_words);
}

std::unique_ptr<Node> Parser::parse_output() {
  auto node = make_node(NodeKind::kOutput, take().at);
  node->exprs.push_back(parse_tuple(true, false));
  expect(Token::kVariableEnd, "'}}'");
  return node;
}

std::unique_ptr<Node> Parser::parse_statement() {
  const Position at = current().at;
  if (current().token != Token::kName)
    fail_here(at, cat("expected a tag, found ", describe_current()));
  const std::string word = current().text;
  if (word == "if") return parse_if();
  if (word == "for") return parse_for();
  if (word == "set") return parse_set();
  if (word == "with") return parse_with();
  if (word == "filter") return parse_filter_block();
  if (word == "macro") return parse_macro();
  if (word == "call") return parse_call_block();
  if (word == "generation") return parse_generation();
  if (word == "print") return parse_print();
  if (word == "break" || word == "continue") return parse_jump();
  refuse_tag(word, at);
}

void Parser::refuse_tag(const std::string& word, Position at) const {
  for (const std::string_view known :
       {"block", "extends", "include", "import", "from", "autoescape", "do", "trans", "debug"}) {
    if (word == known) fail_here(at, cat("the tag '", word, "'"), Code::kUnsupported);
  }
  fail_here(at, cat("unexpected tag '", printable(word), "'"));
}

std::unique_ptr<Node> Parser::parse_if() {
  auto node = make_node(NodeKind::kIf, current().at);
  do {
    take();  // if, elif
    node->exprs.push_back(parse_tuple(false, false));
    node->bodies.push_back(parse_block({"elif", "else", "endif"}));
  } while (is_name("elif"));
  if (take().text == "else") {
    node->bodies.push_back(parse_block({"endif"}));
    take();
  }
  return node;
}

std::unique_ptr<Node> Parser::parse_for() {
  auto node = make_node(NodeKind::kFor, take().at);
  node->targets.push_back(parse_target(false));
  ++loop_names_;
  forbid_loop_target(node->targets[0]);
  expect_name("in");
  node->exprs.push_back(parse_tuple(false, false));
  node->exprs.push_back(skip_name("if") ? parse_expression() : nullptr);
  if (is_name("recursive")) fail_here(current().at, "a recursive for loop", Code::kUnsupported);
  ++loops_;
  node->bodies.push_back(parse_block({"endfor", "else"}));
  --loops_;
  if (take().text == "else") {
    node->bodies.push_back(parse_block({"endfor"}));
    take();
  }
  --loop_names_;
  return node;
}

void Parser::forbid_loop_target(const Target& target) {
  if (loop_names_ == 0) return;
  if (!target.tuple && target.attribute.empty() &&
      program_->symbols[static_cast<size_t>(target.symbol)] == "loop") {
    fail_here(target.at, "`loop` cannot be assigned within a for loop");
  }
  for (const Target& item : target.items) forbid_loop_target(item);
}

std::unique_ptr<Node> Parser::parse_set() {
  const Position at = take().at;
  Target target = parse_target(true);
  forbid_loop_target(target);
  auto node = make_node(NodeKind::kSet, at);
  node->targets.push_back(std::move(target));
  if (skip_operator("=")) {
    node->exprs.push_back(parse_tuple(true, false));
    return node;
  }
  node->kind = NodeKind::kSetBlock;
  ExprPtr filter;
  while (skip_operator("|")) filter = parse_filter(std::move(filter));
  node->exprs.push_back(std::move(filter));
  node->bodies.push_back(parse_block({"endset"}));
  take();
  return node;
}

std::unique_ptr<Node> Parser::parse_with() {
  auto node = make_node(NodeKind::kWith, take().at);
  while (current().token != Token::kBlockEnd && current().token != Token::kEnd) {
    if (!node->targets.empty()) expect_operator(",");
    node->targets.push_back(parse_target(false));
    expect_operator("=");
    node->exprs.push_back(parse_expression());
  }
  node->bodies.push_back(parse_block({"endwith"}));
  take();
  return node;
}

std::unique_ptr<Node> Parser::parse_filter_block() {
  auto node = make_node(NodeKind::kFilter, take().at);
  ExprPtr filter = parse_filter(nullptr);
  while (skip_operator("|")) filter = parse_filter(std::move(filter));
  node->exprs.push_back(std::move(filter));
  node->bodies.push_back(parse_block({"endfilter"}));
  take();
  return node;
}

void Parser::parse_signature(MacroDefinition* macro) {
  expect_operator("(");
  while (!is_operator(")")) {
    if (!macro->parameters.empty()) expect_operator(",");
    const Position at = current().at;
    const Target target = name_target(take_name(), at);
    const std::string& name = program_->symbols[static_cast<size_t>(target.symbol)];
    for (const auto& parameter : macro->parameters) {
      if (parameter.second == name) fail_here(at, cat("parameter '", printable(name), "' twice"));
    }
    macro->parameters.emplace_back(target.symbol, name);
    if (skip_operator("=")) {
      macro->defaults.push_back(parse_expression());
    } else if (!macro->defaults.empty()) {
      fail_here(at, "a parameter without a default behind one with a default");
    }
  }
  expect_operator(")");
}

void Parser::parse_macro_body(MacroDefinition* macro, std::string_view end_word) {
  const int outer_loops = std::exchange(loops_, 0);  // a macro is a function: no break leaves it
  macros_.push_back(macro);
  macro->body = parse_block({end_word});
  macros_.pop_back();
  loops_ = outer_loops;
  take();
  const size_t required = macro->parameters.size() - macro->defaults.size();
  for (size_t i = 0; i < macro->parameters.size(); ++i) {
    const std::string& name = macro->parameters[i].second;
    if (name == "caller" && i < required && macro->uses_caller) {
      fail_here(current().at, "the macro parameter 'caller' needs a default");
    }
    if (name == "varargs") macro->uses_varargs = false;
    if (name == "kwargs") macro->uses_kwargs = false;
  }
}

std::unique_ptr<Node> Parser::parse_macro() {
  auto node = make_node(NodeKind::kMacro, take().at);
  node->macro = std::make_unique<MacroDefinition>();
  const Position at = current().at;
  node->macro->symbol = name_target(take_name(), at).symbol;
  node->macro->name = program_->symbols[static_cast<size_t>(node->macro->symbol)];
  parse_signature(node->macro.get());
  parse_macro_body(node->macro.get(), "endmacro");
  return node;
}

std::unique_ptr<Node> Parser::parse_call_block() {
  auto node = make_node(NodeKind::kCall, take().at);
  node->macro = std::make_unique<MacroDefinition>();
  if (is_operator("(")) parse_signature(node->macro.get());
  const Position at = current().at;
  node->exprs.push_back(parse_expression());
  if (node->exprs[0]->kind != ExprKind::kCall) fail_here(at, "expected a call behind {% call");
  parse_macro_body(node->macro.get(), "endcall");
  return node;
}

// transformers marks the assistant's own text with this tag; rendering only passes through it.
std::unique_ptr<Node> Parser::parse_generation() {
  auto node = make_node(NodeKind::kGeneration, take().at);
  const int outer_loops = std::exchange(loops_, 0);
  node->bodies.push_back(parse_block({"endgeneration"}));
  loops_ = outer_loops;
  take();
  return node;
}

std::unique_ptr<Node> Parser::parse_print() {
  auto node = make_node(NodeKind::kOutput, take().at);
  while (current().token != Token::kBlockEnd && current().token != Token::kEnd) {
    if (!node->exprs.empty()) expect_operator(",");
    node->exprs.push_back(parse_expression());
  }
  return node;
}

std::unique_ptr<Node> Parser::parse_jump() {
  const Lexeme word = take();
  if (loops_ == 0) fail_here(word.at, cat("'", word.text, "' outside of a loop"));
  return make_node(word.text == "break" ? NodeKind::kBreak : NodeKind::kContinue, word.at);
}

Target Parser::name_target(const std::string& name, Position at) {
  for (const std::string_view word : {"true", "false", "none", "True", "False", "None"}) {
    if (name == word) fail_here(at, cat("'", word, "' cannot be assigned"));
  }
  Target target;
  target.at = at;
  target.symbol = program_->intern(name);
  return target;
}

Target Parser::to_target(const Expr& expr) {
  if (expr.kind == ExprKind::kName) return name_target(expr.name, expr.at);
  if (expr.kind != ExprKind::kTuple)
    fail_here(expr.at, "only names and tuples of names can be assigned");
  Target target;
  target.at = expr.at;
  target.tuple = true;
  for (const ExprPtr& item : expr.items) target.items.push_back(to_target(*item));
  return target;
}

Target Parser::parse_target(bool with_namespace) {
  Target tuple;
  tuple.at = current().at;
  tuple.tuple = true;
  while (true) {
    if (!tuple.items.empty()) expect_operator(",");
    if (is_tuple_end() && !tuple.items.empty()) return tuple;
    const Lexeme first = current();
    if (with_namespace && first.token == Token::kName && look().token == Token::kOperator &&
        look().text == ".") {
      take();
      take();
      Target target = name_target(first.text, first.at);
      target.attribute = take_name();
      tuple.items.push_back(std::move(target));
    } else if (first.token == Token::kName) {
      tuple.items.push_back(name_target(take().text, first.at));
    } else {
      tuple.items.push_back(to_target(*parse_primary()));
    }
    if (!is_operator(",")) break;
    if (look().token == Token::kOperator && look().text == "=") {  // a trailing comma: `a, = ...`
      fail_here(current().at, "a trailing comma in an assignment", Code::kUnsupported);
    }
  }
  if (tuple.items.size() == 1) return std::move(tuple.items[0]);
  return tuple;
}

}  // namespace topknot::chat
