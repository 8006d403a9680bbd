// The values a template computes with: Python's, as far as chat templates can see them.
//
// Values are immutable and shared, except Namespace (which the template may assign to), Iterator,
// Cycler, Joiner and LoopState (which advance). Nothing immutable can reach itself, and the mutable
// ones that could are owned by the interpreter, so reference counts free everything. Each object
// knows how deep it nests, which bounds every recursion over values, and gives its bytes back to
// the ledger at its end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "chat/failure.h"
#include "chat/limits.h"
#include "chat/text.h"

namespace topknot::chat {

// Steps taken and bytes alive in one rendering.
class Ledger {
 public:
  explicit Ledger(const RenderLimits& limits) : limits_(limits) {}
  void step(uint64_t count = 1);
  void acquire(size_t bytes);
  void release(size_t bytes) { live_ -= bytes; }

 private:
  const RenderLimits limits_;
  uint64_t steps_ = 0;
  size_t live_ = 0;
};

struct Object {
  Ledger* ledger = nullptr;  // null for literals of the template, which outlive a rendering
  size_t bytes = 0;
  uint32_t depth = 1;
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

 protected:
  ~Object() {
    if (ledger != nullptr) ledger->release(bytes);
  }
};

struct StringObject;
struct Sequence;
struct Dict;
struct Namespace;
struct Iterator;
struct Macro;
struct Method;
struct LoopState;
struct Cycler;
struct Joiner;
enum class Builtin : uint8_t {
  kRange,
  kNamespace,
  kDict,
  kRaiseException,
  kStrftimeNow,
  kCycler,
  kJoiner
};

struct Undefined {
  std::shared_ptr<const std::string> reason;
  bool unsafe = false;  // the sandbox refused the attribute
};
struct None {};

enum class Kind : uint8_t {  // the order of Value::State
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kSequence,
  kDict,
  kNamespace,
  kIterator,
  kMacro,
  kMethod,
  kBuiltin,
  kLoop,
  kCycler,
  kJoiner,
};

template <class T, class Variant>
struct IsAlternative;
template <class T, class... Alternatives>
struct IsAlternative<T, std::variant<Alternatives...>>
    : std::bool_constant<(std::is_same_v<T, Alternatives> || ...)> {};

class Value {
 public:
  using State =
      std::variant<Undefined, None, bool, int64_t, double, std::shared_ptr<const StringObject>,
                   std::shared_ptr<const Sequence>, std::shared_ptr<const Dict>, Namespace*,
                   std::shared_ptr<Iterator>, std::shared_ptr<const Macro>,
                   std::shared_ptr<const Method>, Builtin, std::shared_ptr<LoopState>,
                   std::shared_ptr<Cycler>, std::shared_ptr<Joiner>>;

  Value() = default;  // undefined, without a reason
  template <class T>
  requires IsAlternative<T, State>::value Value(T state)
      : state_(std::in_place_type<T>, std::move(state)) {}  // NOLINT implicit
  static Value undefined(std::string reason) {
    return Undefined{std::make_shared<const std::string>(std::move(reason)), false};
  }

  Kind kind() const { return static_cast<Kind>(state_.index()); }
  bool is(Kind kind_asked) const { return kind() == kind_asked; }
  bool is_undefined() const { return is(Kind::kUndefined); }
  bool is_none() const { return is(Kind::kNone); }
  bool is_string() const { return is(Kind::kString); }
  bool is_number() const { return is(Kind::kBool) || is(Kind::kInt) || is(Kind::kFloat); }
  bool is_integral() const { return is(Kind::kBool) || is(Kind::kInt); }

  template <class T>
  const T& get() const {
    return std::get<T>(state_);
  }
  const Text& text() const;
  const std::string& bytes() const { return text().bytes(); }
  const Sequence& sequence() const { return *get<std::shared_ptr<const Sequence>>(); }
  const Dict& dict() const { return *get<std::shared_ptr<const Dict>>(); }
  int64_t integer() const { return is(Kind::kBool) ? get<bool>() : get<int64_t>(); }
  double number() const {
    return is(Kind::kFloat) ? get<double>() : static_cast<double>(integer());
  }
  uint32_t depth() const;
  const void* identity() const;  // address of the object behind it; null for scalars

 private:
  State state_;
};

struct StringObject : Object {
  Text text;
  bool markup = false;  // result of the `safe` and `escape` filters
};

enum class Flavor : uint8_t { kList, kTuple, kRange, kKeys, kValues, kItems };

struct Sequence : Object {
  Flavor flavor = Flavor::kList;
  std::vector<Value> items;
  int64_t range_start = 0, range_stop = 0, range_step = 1;  // kRange, for printing
};

struct Dict : Object {
  std::vector<std::pair<Value, Value>> entries;        // in order of insertion
  std::unordered_map<std::string_view, size_t> index;  // string keys of larger dicts

  // Null when absent. Keys are compared as Python does: 1, 1.0 and True are one key.
  const Value* find(std::string_view key) const;
  const Value* find(const Value& key, Ledger* meter) const;
  void set(Value key, Value value, Ledger* meter);  // only while it is being built
};

struct Namespace {
  std::vector<std::pair<std::string, Value>> attributes;
  const Value* find(std::string_view name) const;
};

// A Python generator or reversed(): its items can be taken once. A filter that failed half way
// keeps its failure until someone takes that item.
struct Iterator : Object {
  std::vector<Value> items;
  size_t next = 0;
  std::optional<Failure> failure;
};

struct Method : Object {  // value.name, not yet called
  Value self;
  std::string name;
};

struct LoopState : Object {
  std::vector<Value> items;
  size_t index = 0;
  bool running = true;
  std::optional<std::vector<Value>> last_changed;
};

struct Cycler : Object {
  std::vector<Value> items;
  size_t next = 0;
};

struct Joiner : Object {
  Value separator;
  bool used = false;
};

// Why an undefined value is undefined: "'x' is undefined".
std::string undefined_reason(const Value& value);
// Python's name of the type, for messages.
std::string type_name(const Value& value);
bool truth(const Value& value);
bool equal(const Value& a, const Value& b, Ledger* ledger);
// a < b for numbers, strings and sequences of one flavor; a failure for anything else.
bool less(const Value& a, const Value& b, Ledger* ledger);
// Fails for lists and dicts, which cannot be keys.
void require_hashable(const Value& value);

}  // namespace topknot::chat
