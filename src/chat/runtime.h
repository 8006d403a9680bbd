// What operators, filters, tests and methods share while one template renders: making values within
// the limits, printing them, walking over them.
#pragma once

#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/value.h"

namespace topknot::chat {

using Clock = std::function<std::tm()>;

class Runtime {
 public:
  Runtime(const RenderLimits& render_limits, Clock local_clock)
      : limits(render_limits), ledger(render_limits), clock(std::move(local_clock)) {}
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  Value string(Text text, bool markup = false);
  Value string(std::string_view bytes, bool trusted) { return string(Text(bytes, trusted)); }
  Value empty_string() { return string(Text()); }
  Value list(std::vector<Value> items, Flavor flavor = Flavor::kList);
  Value tuple(std::vector<Value> items) { return list(std::move(items), Flavor::kTuple); }
  Value dict(std::shared_ptr<Dict> dict);
  Value iterator(std::vector<Value> items, std::optional<Failure> failure = {});
  Value method(const Value& self, std::string_view name);
  Value make_namespace();  // owned here: a namespace may hold itself
  Value range(int64_t start, int64_t stop, int64_t step);
  std::shared_ptr<LoopState> loop(std::vector<Value> items);

  // Registers an object made elsewhere: its bytes and the depth of what it holds.
  void adopt(Object* object, size_t bytes, uint32_t inner_depth);

  // str(value): what {{ value }} prints.
  Text to_text(const Value& value);
  // repr(value).
  Text repr(const Value& value);

  // All items of an iterable, as a for loop sees them; an Iterator is used up. Fails for other
  // values.
  std::vector<Value> items_of(const Value& value);
  bool is_iterable(const Value& value) const;
  // len(value); fails where Python has none.
  int64_t length_of(const Value& value);

  const RenderLimits limits;
  Ledger ledger;
  Clock clock;

 private:
  void append_repr(Text* out, const Value& value, uint32_t depth);
  void append_items(Text* out, const std::vector<Value>& items, uint32_t depth);

  std::vector<std::unique_ptr<Namespace>> namespaces_;
};

// Positional and keyword arguments of a call.
struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> keywords;
};

// The arguments in the order of `names`, by position or by keyword; null where not given. Fails on
// unknown, doubled or surplus ones. A name of "" is given by position only.
std::vector<const Value*> bind(const Arguments& arguments,
                               std::initializer_list<std::string_view> names,
                               std::string_view callee, size_t required = 0);
int64_t integer_argument(const Value* value, int64_t fallback, std::string_view name);
const Text& text_argument(const Value& value, std::string_view name);

// Python's repr(float), shortest that reads back the same.
std::string float_repr(double value);

void append_code_point(Text* out, uint32_t code_point, bool trusted);

}  // namespace topknot::chat
