// Expressions.
#include "chat/parser.h"

#include <algorithm>

#include "chat/filters.h"
#include "chat/predicates.h"

namespace topknot::chat {
namespace {

template <class... T>
std::vector<ExprPtr> list_of(T... items) {
  std::vector<ExprPtr> out;
  (out.push_back(std::move(items)), ...);
  return out;
}

Value literal_string(const std::string& bytes) {
  auto object = std::make_shared<StringObject>();
  object->text = Text(bytes, true);
  return Value(std::shared_ptr<const StringObject>(std::move(object)));
}

}  // namespace

Program parse_program(const std::string& source, const std::string& name) {
  Program program;
  program.name = name;
  program.body = Parser(tokenize(source), &program).parse_template();
  return program;
}

Lexeme Parser::take() {
  Lexeme taken = current();
  if (next_ + 1 < lexemes_.size()) ++next_;
  return taken;
}

bool Parser::is_operator(std::string_view text) const {
  return current().token == Token::kOperator && current().text == text;
}
bool Parser::is_name(std::string_view text) const {
  return current().token == Token::kName && current().text == text;
}

bool Parser::skip_operator(std::string_view text) {
  if (!is_operator(text)) return false;
  take();
  return true;
}

bool Parser::skip_name(std::string_view text) {
  if (!is_name(text)) return false;
  take();
  return true;
}

void Parser::expect_operator(std::string_view text) {
  if (!skip_operator(text))
    fail_here(current().at, cat("expected '", text, "', found ", describe_current()));
}

void Parser::expect_name(std::string_view text) {
  if (!skip_name(text))
    fail_here(current().at, cat("expected '", text, "', found ", describe_current()));
}

void Parser::expect(Token token, std::string_view description) {
  if (current().token != token)
    fail_here(current().at, cat("expected ", description, ", found ", describe_current()));
  take();
}

std::string Parser::take_name() {
  if (current().token != Token::kName)
    fail_here(current().at, cat("expected a name, found ", describe_current()));
  return take().text;
}

void Parser::fail_here(Position at, std::string why, Code code) const {
  const bool unsupported = code == Code::kUnsupported;
  throw Failure{Error{
      .code = code,
      .what = unsupported ? "the chat template uses something Topknot does not offer"
                          : "the chat template is malformed",
      .where = cat("line ", at.line, ", column ", at.column),
      .why = std::move(why),
      .fix = unsupported ? "pass a template that does without it, and report the one that needs it"
                         : "pass a template that jinja2 accepts"}};
}

std::string Parser::describe_current() const {
  switch (current().token) {
    case Token::kEnd: return "the end of the template";
    case Token::kData: return "template text";
    case Token::kVariableBegin: return "'{{'";
    case Token::kVariableEnd: return "'}}'";
    case Token::kBlockBegin: return "'{%'";
    case Token::kBlockEnd: return "'%}'";
    case Token::kString: return "a string";
    case Token::kInteger:
    case Token::kFloat: return "a number";
    default: return cat("'", printable(current().text), "'");
  }
}

void Parser::enter() {
  if (++nesting_ > kMaxSyntaxDepth) {
    fail_here(current().at, cat("nested more than ", kMaxSyntaxDepth, " deep"), Code::kOutOfRange);
  }
}

void Parser::add_depth(Expr* expr, const ExprPtr& child) {
  if (child == nullptr) return;
  expr->depth = std::max(expr->depth, child->depth + 1);
  if (expr->depth > kMaxSyntaxDepth) {
    fail_here(expr->at, cat("an expression nested more than ", kMaxSyntaxDepth, " deep"),
              Code::kOutOfRange);
  }
}

void Parser::attach(Expr* expr, CallArguments arguments) {
  for (const ExprPtr& argument : arguments.positional) add_depth(expr, argument);
  for (const auto& keyword : arguments.keywords) add_depth(expr, keyword.second);
  add_depth(expr, arguments.splat);
  add_depth(expr, arguments.keyword_splat);
  expr->arguments = std::move(arguments);
}

ExprPtr Parser::make(ExprKind kind, Position at, std::vector<ExprPtr> items) {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->at = at;
  expr->items = std::move(items);
  for (const ExprPtr& item : expr->items) add_depth(expr.get(), item);
  return expr;
}

ExprPtr Parser::constant(Value value, Position at) {
  ExprPtr expr = make(ExprKind::kConstant, at);
  expr->constant = std::move(value);
  return expr;
}

ExprPtr Parser::name_expr(const std::string& name, Position at) {
  if (name == "self" || name == "super")
    fail_here(at, cat("the blocks behind '", name, "'"), Code::kUnsupported);
  for (MacroDefinition* macro : macros_) {
    if (name == "caller") macro->uses_caller = true;
    if (name == "varargs") macro->uses_varargs = true;
    if (name == "kwargs") macro->uses_kwargs = true;
  }
  ExprPtr expr = make(ExprKind::kName, at);
  expr->name = name;
  expr->symbol = program_->intern(name);
  return expr;
}

bool Parser::is_tuple_end() const {
  const Token token = current().token;
  return token == Token::kVariableEnd || token == Token::kBlockEnd || is_operator(")");
}

ExprPtr Parser::parse_tuple(bool with_conditional, bool parenthesized) {
  const Position at = current().at;
  std::vector<ExprPtr> items;
  bool tuple = false;
  while (true) {
    if (!items.empty()) expect_operator(",");
    if (is_tuple_end()) break;
    items.push_back(with_conditional ? parse_conditional() : parse_or());
    if (!is_operator(",")) break;
    tuple = true;
  }
  if (!tuple && !items.empty()) return std::move(items[0]);
  if (!tuple && !parenthesized)
    fail_here(at, cat("expected an expression, found ", describe_current()));
  return make(ExprKind::kTuple, at, std::move(items));
}

ExprPtr Parser::parse_conditional() {
  const Nesting nesting(this);
  ExprPtr expr = parse_or();
  while (is_name("if")) {
    const Position at = take().at;
    ExprPtr test = parse_or();
    ExprPtr otherwise = skip_name("else") ? parse_conditional() : nullptr;
    expr = make(ExprKind::kConditional, at,
                list_of(std::move(expr), std::move(test), std::move(otherwise)));
  }
  return expr;
}

ExprPtr Parser::parse_or() {
  ExprPtr left = parse_and();
  while (is_name("or")) {
    const Position at = take().at;
    left = make(ExprKind::kOr, at, list_of(std::move(left), parse_and()));
  }
  return left;
}

ExprPtr Parser::parse_and() {
  ExprPtr left = parse_not();
  while (is_name("and")) {
    const Position at = take().at;
    left = make(ExprKind::kAnd, at, list_of(std::move(left), parse_not()));
  }
  return left;
}

ExprPtr Parser::parse_not() {
  if (!is_name("not")) return parse_compare();
  const Nesting nesting(this);
  const Position at = take().at;
  return make(ExprKind::kNot, at, list_of(parse_not()));
}

std::optional<Comparison> Parser::take_comparison() {
  static constexpr std::pair<std::string_view, Comparison> kOperators[] = {
      {"==", Comparison::kEqual},  {"!=", Comparison::kNotEqual},
      {"<", Comparison::kLess},    {"<=", Comparison::kLessEqual},
      {">", Comparison::kGreater}, {">=", Comparison::kGreaterEqual}};
  for (const auto& [text, comparison] : kOperators) {
    if (skip_operator(text)) return comparison;
  }
  if (skip_name("in")) return Comparison::kIn;
  if (is_name("not") && look().token == Token::kName && look().text == "in") {
    take();
    take();
    return Comparison::kNotIn;
  }
  return std::nullopt;
}

ExprPtr Parser::parse_compare() {
  const Position at = current().at;
  ExprPtr first = parse_sum();
  std::vector<Comparison> compares;
  std::vector<ExprPtr> items = list_of(std::move(first));
  while (const auto comparison = take_comparison()) {
    compares.push_back(*comparison);
    items.push_back(parse_sum());
  }
  if (compares.empty()) return std::move(items[0]);
  ExprPtr expr = make(ExprKind::kCompare, at, std::move(items));
  expr->compares = std::move(compares);
  return expr;
}

ExprPtr Parser::parse_sum() {
  ExprPtr left = parse_concat();
  while (is_operator("+") || is_operator("-")) {
    const Lexeme op = take();
    left = make(ExprKind::kBinary, op.at, list_of(std::move(left), parse_concat()));
    left->arithmetic = op.text == "+" ? Arithmetic::kAdd : Arithmetic::kSubtract;
  }
  return left;
}

ExprPtr Parser::parse_concat() {
  const Position at = current().at;
  std::vector<ExprPtr> items = list_of(parse_product());
  while (skip_operator("~")) items.push_back(parse_product());
  return items.size() == 1 ? std::move(items[0]) : make(ExprKind::kConcat, at, std::move(items));
}

ExprPtr Parser::parse_product() {
  static constexpr std::pair<std::string_view, Arithmetic> kOperators[] = {
      {"*", Arithmetic::kMultiply},
      {"/", Arithmetic::kDivide},
      {"//", Arithmetic::kFloorDivide},
      {"%", Arithmetic::kModulo}};
  ExprPtr left = parse_power();
  while (current().token == Token::kOperator) {
    const auto* op = std::find_if(std::begin(kOperators), std::end(kOperators),
                                  [this](const auto& entry) { return is_operator(entry.first); });
    if (op == std::end(kOperators)) break;
    const Position at = take().at;
    left = make(ExprKind::kBinary, at, list_of(std::move(left), parse_power()));
    left->arithmetic = op->second;
  }
  return left;
}

ExprPtr Parser::parse_power() {
  ExprPtr left = parse_unary(true);
  while (is_operator("**")) {  // to the left, as jinja2 has it
    const Position at = take().at;
    left = make(ExprKind::kBinary, at, list_of(std::move(left), parse_unary(true)));
    left->arithmetic = Arithmetic::kPower;
  }
  return left;
}

ExprPtr Parser::parse_unary(bool with_filter) {
  const Nesting nesting(this);
  const Position at = current().at;
  ExprPtr expr;
  if (skip_operator("-")) {
    expr = make(ExprKind::kNegate, at, list_of(parse_unary(false)));
  } else if (skip_operator("+")) {
    expr = make(ExprKind::kPlus, at, list_of(parse_unary(false)));
  } else {
    expr = parse_primary();
  }
  expr = parse_postfix(std::move(expr));
  return with_filter ? parse_filters(std::move(expr)) : std::move(expr);
}

ExprPtr Parser::parse_primary() {
  const Position at = current().at;
  switch (current().token) {
    case Token::kName: {
      const std::string name = take().text;
      if (name == "true" || name == "True") return constant(Value(true), at);
      if (name == "false" || name == "False") return constant(Value(false), at);
      if (name == "none" || name == "None") return constant(Value(None{}), at);
      return name_expr(name, at);
    }
    case Token::kString: return parse_string();
    case Token::kInteger: return constant(Value(take().integer), at);
    case Token::kFloat: return constant(Value(take().real), at);
    default: break;
  }
  if (skip_operator("(")) {
    ExprPtr expr = parse_tuple(true, true);
    expect_operator(")");
    return expr;
  }
  if (is_operator("[")) return parse_list();
  if (is_operator("{")) return parse_dict();
  fail_here(at, cat("expected an expression, found ", describe_current()));
}

ExprPtr Parser::parse_string() {
  const Position at = current().at;
  std::string bytes;
  while (current().token == Token::kString) bytes += take().text;
  return constant(literal_string(bytes), at);
}

ExprPtr Parser::parse_list() {
  const Position at = take().at;
  std::vector<ExprPtr> items;
  while (!is_operator("]")) {
    if (!items.empty()) expect_operator(",");
    if (is_operator("]")) break;
    items.push_back(parse_expression());
  }
  expect_operator("]");
  return make(ExprKind::kList, at, std::move(items));
}

ExprPtr Parser::parse_dict() {
  const Position at = take().at;
  std::vector<ExprPtr> items;
  while (!is_operator("}")) {
    if (!items.empty()) expect_operator(",");
    if (is_operator("}")) break;
    items.push_back(parse_expression());
    expect_operator(":");
    items.push_back(parse_expression());
  }
  expect_operator("}");
  return make(ExprKind::kDict, at, std::move(items));
}

ExprPtr Parser::parse_postfix(ExprPtr expr) {
  while (true) {
    if (is_operator(".") || is_operator("[")) {
      expr = parse_subscript(std::move(expr));
    } else if (is_operator("(")) {
      expr = parse_call(std::move(expr));
    } else {
      return expr;
    }
  }
}

ExprPtr Parser::parse_filters(ExprPtr expr) {
  while (true) {
    if (skip_operator("|")) {
      expr = parse_filter(std::move(expr));
    } else if (is_name("is")) {
      expr = parse_test(std::move(expr));
    } else if (is_operator("(")) {
      expr = parse_call(std::move(expr));
    } else {
      return expr;
    }
  }
}

ExprPtr Parser::parse_subscript(ExprPtr expr) {
  const Lexeme mark = take();
  if (mark.text == "[") return parse_slice_or_index(std::move(expr), mark.at);
  if (current().token == Token::kInteger) {
    const Lexeme number = take();
    return make(ExprKind::kItem, mark.at,
                list_of(std::move(expr), constant(Value(number.integer), number.at)));
  }
  const std::string name = take_name();
  ExprPtr attribute = make(ExprKind::kAttribute, mark.at, list_of(std::move(expr)));
  attribute->name = name;
  return attribute;
}

ExprPtr Parser::parse_slice_or_index(ExprPtr object, Position at) {
  ExprPtr parts[3];
  bool slice = false;
  if (is_operator("]")) {  // a[] is the subscript with the empty tuple
    take();
    return make(ExprKind::kItem, at, list_of(std::move(object), make(ExprKind::kTuple, at)));
  }
  for (int i = 0; i < 3; ++i) {
    if (!is_operator(":") && !is_operator("]")) parts[i] = parse_expression();
    if (i == 2 || !skip_operator(":")) break;
    slice = true;
  }
  if (is_operator(",")) {
    if (slice) fail_here(at, "a subscript with a slice and a comma", Code::kUnsupported);
    std::vector<ExprPtr> keys = list_of(std::move(parts[0]));
    while (skip_operator(",")) {
      if (is_operator(":"))
        fail_here(at, "a subscript with a slice and a comma", Code::kUnsupported);
      keys.push_back(parse_expression());
    }
    parts[0] = make(ExprKind::kTuple, at, std::move(keys));
  }
  expect_operator("]");
  if (!slice) return make(ExprKind::kItem, at, list_of(std::move(object), std::move(parts[0])));
  return make(
      ExprKind::kSlice, at,
      list_of(std::move(object), std::move(parts[0]), std::move(parts[1]), std::move(parts[2])));
}

ExprPtr Parser::parse_call(ExprPtr callee) {
  const Position at = current().at;
  CallArguments arguments = parse_arguments();
  ExprPtr call = make(ExprKind::kCall, at, list_of(std::move(callee)));
  attach(call.get(), std::move(arguments));
  return call;
}

CallArguments Parser::parse_arguments() {
  const Nesting nesting(this);
  const Position at = current().at;
  CallArguments out;
  const auto require = [&](bool allowed) {
    if (!allowed) fail_here(at, "arguments in an order that no call allows");
  };
  expect_operator("(");
  for (bool first = true; !is_operator(")"); first = false) {
    if (!first) expect_operator(",");
    if (!first && is_operator(")")) break;
    if (skip_operator("*")) {
      require(out.splat == nullptr && out.keyword_splat == nullptr);
      out.splat = parse_expression();
    } else if (skip_operator("**")) {
      require(out.keyword_splat == nullptr);
      out.keyword_splat = parse_expression();
    } else if (current().token == Token::kName && look().token == Token::kOperator &&
               look().text == "=") {
      require(out.keyword_splat == nullptr);
      std::string name = take().text;
      take();
      for (const auto& keyword : out.keywords) {
        if (keyword.first == name) fail_here(at, cat("argument '", printable(name), "' twice"));
      }
      out.keywords.emplace_back(std::move(name), parse_expression());
    } else {
      require(out.splat == nullptr && out.keyword_splat == nullptr && out.keywords.empty());
      out.positional.push_back(parse_expression());
    }
  }
  expect_operator(")");
  return out;
}

// Behind the bar. One filter; the caller goes on with the next.
ExprPtr Parser::parse_filter(ExprPtr expr) {
  const Position at = current().at;
  std::string name = take_name();
  while (skip_operator(".")) name += cat(".", take_name());
  CallArguments arguments;
  if (is_operator("(")) arguments = parse_arguments();
  ExprPtr filter = make(ExprKind::kFilter, at, list_of(std::move(expr)));
  filter->filter = find_filter(name);
  if (filter->filter == nullptr)
    fail_here(at, cat("the filter '", printable(name), "'"), Code::kUnsupported);
  attach(filter.get(), std::move(arguments));
  return filter;
}

bool Parser::starts_test_argument() const {
  switch (current().token) {
    case Token::kString:
    case Token::kInteger:
    case Token::kFloat: return true;
    case Token::kName:
      return current().text != "else" && current().text != "or" && current().text != "and";
    default: return is_operator("[") || is_operator("{");
  }
}

ExprPtr Parser::parse_test(ExprPtr expr) {
  take();  // is
  const bool negated = skip_name("not");
  const Position at = current().at;
  std::string name = take_name();
  while (skip_operator(".")) name += cat(".", take_name());
  ExprPtr test = make(ExprKind::kTest, at, list_of(std::move(expr)));
  if (is_operator("(")) {
    attach(test.get(), parse_arguments());
  } else if (starts_test_argument()) {
    if (is_name("is")) fail_here(at, "tests with `is` cannot be chained");
    const Nesting nesting(this);
    CallArguments arguments;
    arguments.positional.push_back(parse_postfix(parse_primary()));
    attach(test.get(), std::move(arguments));
  }
  test->predicate = find_predicate(name);
  if (test->predicate == nullptr)
    fail_here(at, cat("the test '", printable(name), "'"), Code::kUnsupported);
  return negated ? make(ExprKind::kNot, at, list_of(std::move(test))) : std::move(test);
}

}  // namespace topknot::chat
