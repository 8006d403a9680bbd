#include "chat/operators.h"

#include <algorithm>
#include <cmath>

#include "base/checked_math.h"
#include "chat/unicode.h"

namespace topknot::chat {
namespace {

constexpr std::string_view kSigns[] = {"+", "-", "*", "/", "//", "%", "**"};

[[noreturn]] void fail_operands(Arithmetic op, const Value& a, const Value& b) {
  fail_value("'", kSigns[static_cast<size_t>(op)], "' does not take ", type_name(a), " and ",
             type_name(b));
}

[[noreturn]] void fail_overflow(Arithmetic op) {
  fail(Code::kOutOfRange, "the chat template went over a limit",
       cat("the result of '", kSigns[static_cast<size_t>(op)], "' does not fit 64 bits"));
}

int64_t integer_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (true) {
    if ((exponent & 1) != 0 && mul_overflows(result, base, &result))
      fail_overflow(Arithmetic::kPower);
    exponent >>= 1;
    if (exponent == 0) return result;
    if (mul_overflows(base, base, &base)) fail_overflow(Arithmetic::kPower);
  }
}

Value checked(double value) {
  if (!std::isfinite(value)) fail_overflow(Arithmetic::kPower);
  return Value(value);
}

Value power(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral() && b.integer() >= 0)
    return Value(integer_power(a.integer(), b.integer()));
  const double base = a.number();
  const double exponent = b.number();
  if (base == 0 && exponent < 0) fail_value("zero to a negative power");
  if (base < 0 && exponent != std::floor(exponent))
    fail_value("a fractional power of a negative number");
  const double result = std::pow(base, exponent);
  return std::isfinite(base) && std::isfinite(exponent) ? checked(result) : Value(result);
}

double float_modulo(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  return rest == 0 ? std::copysign(0.0, b) : rest;
}

double float_floor_divide(double a, double b) {
  const double quotient = std::floor((a - float_modulo(a, b)) / b + 0.5);
  return quotient == 0 ? std::copysign(0.0, a / b) : quotient;
}

Value integer_arithmetic(Arithmetic op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case Arithmetic::kAdd:
      if (add_overflows(a, b, &result)) fail_overflow(op);
      return Value(result);
    case Arithmetic::kSubtract:
      if (__builtin_sub_overflow(a, b, &result)) fail_overflow(op);
      return Value(result);
    case Arithmetic::kMultiply:
      if (mul_overflows(a, b, &result)) fail_overflow(op);
      return Value(result);
    case Arithmetic::kDivide: return Value(static_cast<double>(a) / static_cast<double>(b));
    default: break;
  }
  if (b == -1) {  // the one divisor that can overflow
    if (op == Arithmetic::kModulo) return Value(int64_t{0});
    if (__builtin_sub_overflow(int64_t{0}, a, &result)) fail_overflow(op);
    return Value(result);
  }
  const int64_t rest = a % b;
  const bool round_down = rest != 0 && (rest < 0) != (b < 0);
  if (op == Arithmetic::kModulo) return Value(round_down ? rest + b : rest);
  return Value(a / b - (round_down ? 1 : 0));
}

Value number_arithmetic(Arithmetic op, const Value& a, const Value& b) {
  if (op == Arithmetic::kPower) return power(a, b);
  const bool divides =
      op == Arithmetic::kDivide || op == Arithmetic::kFloorDivide || op == Arithmetic::kModulo;
  if (divides && b.number() == 0) fail_value("division by zero");
  if (a.is_integral() && b.is_integral()) return integer_arithmetic(op, a.integer(), b.integer());
  const double x = a.number();
  const double y = b.number();
  switch (op) {
    case Arithmetic::kAdd: return Value(x + y);
    case Arithmetic::kSubtract: return Value(x - y);
    case Arithmetic::kMultiply: return Value(x * y);
    case Arithmetic::kDivide: return Value(x / y);
    case Arithmetic::kFloorDivide: return Value(float_floor_divide(x, y));
    default: return Value(float_modulo(x, y));
  }
}

bool is_plain_sequence(const Value& value) {
  return value.is(Kind::kSequence) &&
         (value.sequence().flavor == Flavor::kList || value.sequence().flavor == Flavor::kTuple);
}

Value add(Runtime& runtime, const Value& a, const Value& b) {
  if (a.is_string() && b.is_string()) {
    const bool left = a.get<std::shared_ptr<const StringObject>>()->markup;
    const bool right = b.get<std::shared_ptr<const StringObject>>()->markup;
    Text out = right && !left ? escape_html(a.text()) : a.text();
    out.append(left && !right ? escape_html(b.text()) : b.text());
    return runtime.string(std::move(out), left || right);
  }
  if (is_plain_sequence(a) && is_plain_sequence(b) && a.sequence().flavor == b.sequence().flavor) {
    std::vector<Value> items = a.sequence().items;
    runtime.ledger.step(items.size() + b.sequence().items.size());
    items.insert(items.end(), b.sequence().items.begin(), b.sequence().items.end());
    return runtime.list(std::move(items), a.sequence().flavor);
  }
  fail_operands(Arithmetic::kAdd, a, b);
}

Value repeat(Runtime& runtime, const Value& value, int64_t count) {
  const size_t times = count < 0 ? 0 : static_cast<size_t>(count);
  size_t total = 0;
  if (value.is_string()) {
    if (mul_overflows(value.text().size(), times, &total) || total > kMaxStringBytes) {
      fail_limit("a string would be longer than ", human_bytes(kMaxStringBytes));
    }
    runtime.ledger.step(total / kTextBytesPerStep + (value.text().empty() ? 0 : times));
    Text out;
    for (size_t i = 0; i < times && total > 0; ++i) out.append(value.text());
    return runtime.string(std::move(out));
  }
  const auto& items = value.sequence().items;
  if (mul_overflows(items.size(), times, &total) || total > kMaxItems) {
    fail_limit("a list would have more than ", kMaxItems, " items");
  }
  runtime.ledger.step(total);
  std::vector<Value> out;
  for (size_t i = 0; i < times && total > 0; ++i) out.insert(out.end(), items.begin(), items.end());
  return runtime.list(std::move(out), value.sequence().flavor);
}

bool contains_pair(Runtime& runtime, const Value& container, const Value& item) {
  const auto& items = container.sequence().items;
  return std::any_of(items.begin(), items.end(), [&](const Value& held) {
    return (held.identity() != nullptr && held.identity() == item.identity()) ||
           equal(held, item, &runtime.ledger);
  });
}

// Bounds of a slice as Python's slice.indices gives them.
struct SliceRange {
  int64_t start, stop, step;
};

SliceRange slice_range(const Value& start, const Value& stop, const Value& step, int64_t length) {
  const auto bound = [](const Value& value, int64_t fallback) {
    return value.is_none() ? fallback : value.integer();
  };
  SliceRange range{0, 0, bound(step, 1)};
  if (range.step == 0) fail_value("a slice with a step of zero");
  range.step = std::clamp(range.step, -kSliceStepLimit, kSliceStepLimit);
  const bool down = range.step < 0;
  const int64_t low = down ? -1 : 0;
  const int64_t high = down ? length - 1 : length;
  const auto clip = [&](int64_t value) {
    if (value < 0) value = value < -length ? low : value + length;
    return std::clamp(value, low, high);
  };
  range.start = start.is_none() ? (down ? high : low) : clip(bound(start, 0));
  range.stop = stop.is_none() ? (down ? low : high) : clip(bound(stop, 0));
  return range;
}

Value slice_text(Runtime& runtime, const Text& text, const SliceRange& range) {
  runtime.ledger.step(1 + text.size() / kTextBytesPerStep);
  if (range.step == 1) {
    if (range.start >= range.stop) return runtime.empty_string();
    const size_t begin = code_point_offset(text.bytes(), static_cast<size_t>(range.start));
    const std::string_view rest = std::string_view(text.bytes()).substr(begin);
    return runtime.string(text.slice(
        begin, begin + code_point_offset(rest, static_cast<size_t>(range.stop - range.start))));
  }
  std::vector<size_t> offsets;
  for (size_t i = 0; i < text.size(); next_code_point(text.bytes(), &i)) offsets.push_back(i);
  offsets.push_back(text.size());
  runtime.ledger.step(offsets.size() / 8);
  Text out;
  for (int64_t i = range.start; range.step > 0 ? i < range.stop : i > range.stop; i += range.step) {
    out.append(text, offsets[static_cast<size_t>(i)], offsets[static_cast<size_t>(i) + 1]);
  }
  return runtime.string(std::move(out));
}

}  // namespace

Value arithmetic(Runtime& runtime, Arithmetic op, const Value& a, const Value& b) {
  if (op == Arithmetic::kModulo && a.is_string()) return format_percent(runtime, a.text(), b);
  for (const Value* side : {&a, &b}) {
    if (side->is_undefined()) fail_value(undefined_reason(*side));
  }
  if (a.is_number() && b.is_number()) return number_arithmetic(op, a, b);
  if (op == Arithmetic::kAdd) return add(runtime, a, b);
  if (op == Arithmetic::kMultiply) {
    const bool left = a.is_string() || is_plain_sequence(a);
    const bool right = b.is_string() || is_plain_sequence(b);
    if (left && b.is_integral()) return repeat(runtime, a, b.integer());
    if (right && a.is_integral()) return repeat(runtime, b, a.integer());
  }
  fail_operands(op, a, b);
}

Value negate(const Value& value) {
  if (value.is_undefined()) fail_value(undefined_reason(value));
  if (value.is(Kind::kFloat)) return Value(-value.number());
  if (!value.is_integral()) fail_value("a ", type_name(value), " has no sign");
  int64_t result = 0;
  if (__builtin_sub_overflow(int64_t{0}, value.integer(), &result))
    fail_overflow(Arithmetic::kSubtract);
  return Value(result);
}

bool contains(Runtime& runtime, const Value& container, const Value& item) {
  switch (container.kind()) {
    case Kind::kString: {
      if (item.is_undefined()) fail_value(undefined_reason(item));
      if (!item.is_string()) fail_value("'in' a string needs a string, not a ", type_name(item));
      runtime.ledger.step(container.text().size() / kTextBytesPerStep);
      return find_bytes(container.bytes(), item.bytes(), 0) != std::string::npos;
    }
    case Kind::kDict:
      require_hashable(item);
      return container.dict().find(item, &runtime.ledger) != nullptr;
    case Kind::kSequence: return contains_pair(runtime, container, item);
    case Kind::kUndefined: return false;
    case Kind::kIterator: {  // stops behind the item it finds, as Python's does
      Iterator& iterator = *container.get<std::shared_ptr<Iterator>>();
      while (iterator.next < iterator.items.size()) {
        if (equal(iterator.items[iterator.next++], item, &runtime.ledger)) return true;
      }
      if (iterator.failure) throw *iterator.failure;
      return false;
    }
    default: fail_value("'in' does not take a ", type_name(container));
  }
}

bool compare(Runtime& runtime, Comparison op, const Value& a, const Value& b) {
  switch (op) {
    case Comparison::kEqual: return equal(a, b, &runtime.ledger);
    case Comparison::kNotEqual: return !equal(a, b, &runtime.ledger);
    case Comparison::kLess: return less(a, b, &runtime.ledger);
    case Comparison::kGreater: return less(b, a, &runtime.ledger);
    case Comparison::kLessEqual: return less(a, b, &runtime.ledger) || equal(a, b, &runtime.ledger);
    case Comparison::kGreaterEqual:
      return less(b, a, &runtime.ledger) || equal(a, b, &runtime.ledger);
    case Comparison::kIn: return contains(runtime, b, a);
    case Comparison::kNotIn: return !contains(runtime, b, a);
  }
  return false;
}

Value get_slice(Runtime& runtime, const Value& value, const Value& start, const Value& stop,
                const Value& step) {
  if (value.is_undefined()) fail_value(undefined_reason(value));
  for (const Value* bound : {&start, &stop, &step}) {
    if (!bound->is_none() && !bound->is_integral())
      fail_value("a slice's bounds must be integers, not a ", type_name(*bound));
  }
  if (value.is_string()) {
    const auto length = static_cast<int64_t>(code_point_count(value.bytes()));
    return slice_text(runtime, value.text(), slice_range(start, stop, step, length));
  }
  const bool sliceable = is_plain_sequence(value) ||
                         (value.is(Kind::kSequence) && value.sequence().flavor == Flavor::kRange);
  if (!sliceable) fail_value("a ", type_name(value), " cannot be sliced");
  const auto& items = value.sequence().items;
  const SliceRange range = slice_range(start, stop, step, static_cast<int64_t>(items.size()));
  if (value.sequence().flavor == Flavor::kRange) {
    const Sequence& from = value.sequence();
    return runtime.range(from.range_start + range.start * from.range_step,
                         from.range_start + range.stop * from.range_step,
                         range.step * from.range_step);
  }
  std::vector<Value> out;
  for (int64_t i = range.start; range.step > 0 ? i < range.stop : i > range.stop; i += range.step) {
    out.push_back(items[static_cast<size_t>(i)]);
  }
  runtime.ledger.step(out.size());
  return runtime.list(std::move(out), value.sequence().flavor);
}

}  // namespace topknot::chat
