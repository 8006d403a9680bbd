// Tokens to syntax tree, with jinja2's grammar and precedences. What Topknot does not offer
// (include, import, inheritance, recursive loops, unknown filters and tests) is refused here, by
// name and place, not when a conversation first reaches it.
#pragma once

#include <string>
#include <vector>

#include "chat/ast.h"
#include "chat/lexer.h"

namespace topknot::chat {

// Throws Failure.
Program parse_program(const std::string& source, const std::string& name);

class Parser {
 public:
  Parser(std::vector<Lexeme> lexemes, Program* program)
      : lexemes_(std::move(lexemes)), program_(program) {}
  Body parse_template();

 private:
  // Counts recursion; a template nested deeper than kMaxSyntaxDepth is refused.
  class Nesting {
   public:
    explicit Nesting(Parser* parser) : parser_(parser) { parser_->enter(); }
    ~Nesting() { --parser_->nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    Parser* parser_;
  };
  using Words = std::initializer_list<std::string_view>;

  const Lexeme& current() const { return lexemes_[next_]; }
  const Lexeme& look() const { return lexemes_[std::min(next_ + 1, lexemes_.size() - 1)]; }
  Lexeme take();
  bool is_operator(std::string_view text) const;
  bool is_name(std::string_view text) const;
  bool skip_operator(std::string_view text);
  bool skip_name(std::string_view text);
  void expect_operator(std::string_view text);
  void expect_name(std::string_view text);
  void expect(Token token, std::string_view description);
  std::string take_name();
  [[noreturn]] void fail_here(Position at, std::string why, Code code = Code::kCorrupt) const;
  std::string describe_current() const;
  void enter();

  // parser_statements.cc
  Body parse_until(Words end_words);
  Body parse_block(Words end_words);
  std::unique_ptr<Node> parse_statement();
  std::unique_ptr<Node> parse_output();
  std::unique_ptr<Node> parse_if();
  std::unique_ptr<Node> parse_for();
  std::unique_ptr<Node> parse_set();
  std::unique_ptr<Node> parse_with();
  std::unique_ptr<Node> parse_filter_block();
  std::unique_ptr<Node> parse_macro();
  std::unique_ptr<Node> parse_call_block();
  std::unique_ptr<Node> parse_generation();
  std::unique_ptr<Node> parse_print();
  std::unique_ptr<Node> parse_jump();
  void parse_signature(MacroDefinition* macro);
  void parse_macro_body(MacroDefinition* macro, std::string_view end_word);
  Target parse_target(bool with_namespace);
  Target to_target(const Expr& expr);
  Target name_target(const std::string& name, Position at);
  void forbid_loop_target(const Target& target);
  std::unique_ptr<Node> make_node(NodeKind kind, Position at);
  [[noreturn]] void refuse_tag(const std::string& word, Position at) const;

  // parser.cc
  ExprPtr parse_expression() { return parse_conditional(); }
  ExprPtr parse_tuple(bool with_conditional, bool parenthesized);
  bool is_tuple_end() const;
  ExprPtr parse_conditional();
  ExprPtr parse_or();
  ExprPtr parse_and();
  ExprPtr parse_not();
  ExprPtr parse_compare();
  std::optional<Comparison> take_comparison();
  ExprPtr parse_sum();
  ExprPtr parse_concat();
  ExprPtr parse_product();
  ExprPtr parse_power();
  ExprPtr parse_unary(bool with_filter);
  ExprPtr parse_primary();
  ExprPtr parse_string();
  ExprPtr parse_list();
  ExprPtr parse_dict();
  ExprPtr parse_postfix(ExprPtr expr);
  ExprPtr parse_filters(ExprPtr expr);
  ExprPtr parse_subscript(ExprPtr expr);
  ExprPtr parse_slice_or_index(ExprPtr object, Position at);
  ExprPtr parse_call(ExprPtr callee);
  CallArguments parse_arguments();
  ExprPtr parse_filter(ExprPtr expr);
  ExprPtr parse_test(ExprPtr expr);
  bool starts_test_argument() const;
  ExprPtr name_expr(const std::string& name, Position at);
  ExprPtr make(ExprKind kind, Position at, std::vector<ExprPtr> items = {});
  ExprPtr constant(Value value, Position at);
  void add_depth(Expr* expr, const ExprPtr& child);
  void attach(Expr* expr, CallArguments arguments);

  std::vector<Lexeme> lexemes_;
  Program* program_;
  size_t next_ = 0;
  int nesting_ = 0;
  int loops_ = 0;       // a break here has this many loops around it
  int loop_names_ = 0;  // for statements around, whose `loop` may not be assigned
  std::vector<MacroDefinition*> macros_;
};

}  // namespace topknot::chat
