// Expressions.
#include "chat/filters.h"
#include "chat/interpreter.h"
#include "chat/operators.h"
#include "chat/predicates.h"

namespace topknot::chat {

Value Interpreter::evaluate(const Expr& expr) {
  if (expr.kind == ExprKind::kConstant) return expr.constant;
  const Depth depth(this);
  at_ = expr.at;
  if (expr.kind == ExprKind::kName) return lookup(expr.symbol);
  return evaluate_parts(expr);
}

Value Interpreter::evaluate_parts(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kList: return runtime_.list(evaluate_all(expr.items));
    case ExprKind::kTuple: return runtime_.tuple(evaluate_all(expr.items));
    case ExprKind::kDict: return evaluate_dict(expr);
    case ExprKind::kSlice: return evaluate_slice(expr);
    case ExprKind::kCompare: return evaluate_compare(expr);
    case ExprKind::kConcat: return evaluate_concat(expr);
    case ExprKind::kConditional: return evaluate_conditional(expr);
    case ExprKind::kCall: return evaluate_call(expr, nullptr);
    case ExprKind::kConstant:
    case ExprKind::kName: return {};  // evaluate() has dealt with these
    default: break;
  }
  const Value first = evaluate(*expr.items[0]);
  at_ = expr.at;
  switch (expr.kind) {
    case ExprKind::kAttribute: return get_attribute(runtime_, first, expr.name);
    case ExprKind::kFilter: return apply_filter(expr, first);
    case ExprKind::kTest: {
      const Arguments arguments = evaluate_arguments(expr.arguments);
      at_ = expr.at;
      return Value(apply_predicate(runtime_, *expr.predicate, first, arguments));
    }
    case ExprKind::kNot: return Value(!truth(first));
    case ExprKind::kNegate: return negate(first);
    case ExprKind::kPlus:
      if (!first.is_number()) negate(first);  // fails
      return first.is(Kind::kBool) ? Value(first.integer()) : first;
    case ExprKind::kAnd: return truth(first) ? evaluate(*expr.items[1]) : first;
    case ExprKind::kOr: return truth(first) ? first : evaluate(*expr.items[1]);
    default: break;
  }
  const Value second = evaluate(*expr.items[1]);
  at_ = expr.at;
  if (expr.kind == ExprKind::kItem) return get_item(runtime_, first, second);
  return arithmetic(runtime_, expr.arithmetic, first, second);
}

std::vector<Value> Interpreter::evaluate_all(const std::vector<ExprPtr>& exprs) {
  std::vector<Value> values;
  values.reserve(exprs.size());
  for (const ExprPtr& expr : exprs) values.push_back(evaluate(*expr));
  return values;
}

Value Interpreter::evaluate_dict(const Expr& expr) {
  auto dict = std::make_shared<Dict>();
  for (size_t i = 0; i < expr.items.size(); i += 2) {
    const Value key = evaluate(*expr.items[i]);
    Value value = evaluate(*expr.items[i + 1]);
    require_hashable(key);
    dict->set(key, std::move(value), &runtime_.ledger);
  }
  return runtime_.dict(std::move(dict));
}

Value Interpreter::evaluate_compare(const Expr& expr) {
  Value left = evaluate(*expr.items[0]);
  for (size_t i = 0; i < expr.compares.size(); ++i) {
    Value right = evaluate(*expr.items[i + 1]);
    at_ = expr.at;
    if (!compare(runtime_, expr.compares[i], left, right)) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Interpreter::evaluate_concat(const Expr& expr) {
  Text out;
  for (const ExprPtr& item : expr.items) {
    out.append(runtime_.to_text(evaluate(*item)));
    if (out.size() > kMaxStringBytes)
      fail_limit("a string would be longer than ", human_bytes(kMaxStringBytes));
  }
  return runtime_.string(std::move(out));
}

Value Interpreter::evaluate_slice(const Expr& expr) {
  const Value object = evaluate(*expr.items[0]);
  Value bounds[3];
  for (size_t i = 0; i < 3; ++i) {
    bounds[i] = expr.items[i + 1] == nullptr ? Value(None{}) : evaluate(*expr.items[i + 1]);
  }
  at_ = expr.at;
  return get_slice(runtime_, object, bounds[0], bounds[1], bounds[2]);
}

Value Interpreter::evaluate_conditional(const Expr& expr) {
  if (truth(evaluate(*expr.items[1]))) return evaluate(*expr.items[0]);
  if (expr.items[2] != nullptr) return evaluate(*expr.items[2]);
  return Value::undefined("an inline `if` without `else` was false");
}

Value Interpreter::apply_filter(const Expr& expr, const Value& value) {
  const Arguments arguments = evaluate_arguments(expr.arguments);
  at_ = expr.at;
  return expr.filter->apply(runtime_, value, arguments);
}

// The chain's innermost filter has no operand: it gets the text.
Value Interpreter::apply_filters_to_text(const Expr& expr, const Value& text) {
  const Depth depth(this);
  const Value value = expr.items[0] == nullptr ? text : apply_filters_to_text(*expr.items[0], text);
  return apply_filter(expr, value);
}

Arguments Interpreter::evaluate_arguments(const CallArguments& arguments) {
  Arguments out;
  out.positional = evaluate_all(arguments.positional);
  for (const auto& [name, expr] : arguments.keywords)
    out.keywords.emplace_back(name, evaluate(*expr));
  if (arguments.splat != nullptr) {
    for (Value& item : runtime_.items_of(evaluate(*arguments.splat)))
      out.positional.push_back(std::move(item));
  }
  if (arguments.keyword_splat != nullptr) {
    const Value more = evaluate(*arguments.keyword_splat);
    if (!more.is(Kind::kDict)) fail_value("** needs a dict, not a ", type_name(more));
    for (const auto& [name, value] : more.dict().entries) {
      const std::string& key = text_argument(name, "a keyword").bytes();
      for (const auto& given : out.keywords) {
        if (given.first == key) fail_value("argument '", key, "' is given twice");
      }
      out.keywords.emplace_back(key, value);
    }
  }
  return out;
}

Value Interpreter::evaluate_call(const Expr& expr, const Value* caller) {
  const Value callee = evaluate(*expr.items[0]);
  Arguments arguments = evaluate_arguments(expr.arguments);
  at_ = expr.at;
  if (caller != nullptr) arguments.keywords.emplace_back("caller", *caller);
  return call(callee, std::move(arguments));
}

}  // namespace topknot::chat
