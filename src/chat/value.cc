#include "chat/value.h"

#include <algorithm>

#include "chat/macro.h"

namespace topknot::chat {
namespace {

constexpr size_t kIndexFrom = 16;  // entries from which a hash index beats comparing

const char* flavor_name(Flavor flavor) {
  switch (flavor) {
    case Flavor::kList: return "list";
    case Flavor::kTuple: return "tuple";
    case Flavor::kRange: return "range";
    case Flavor::kKeys: return "dict_keys";
    case Flavor::kValues: return "dict_values";
    case Flavor::kItems: return "dict_items";
  }
  return "sequence";
}

bool numbers_equal(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.integer() == b.integer();
  if (a.is(Kind::kFloat) && b.is(Kind::kFloat)) return a.number() == b.number();
  // Exact: a long double holds every int64 on the supported machines.
  const Value& whole = a.is(Kind::kFloat) ? b : a;
  const Value& real = a.is(Kind::kFloat) ? a : b;
  return static_cast<long double>(whole.integer()) == static_cast<long double>(real.number());
}

bool items_equal(const std::vector<Value>& a, const std::vector<Value>& b, Ledger* ledger) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(),
                    [ledger](const Value& x, const Value& y) { return equal(x, y, ledger); });
}

bool sequences_equal(const Value& a, const Value& b, Ledger* ledger) {
  const Sequence& x = a.sequence();
  const Sequence& y = b.sequence();
  if (x.flavor != y.flavor) return false;
  if (x.flavor == Flavor::kValues) return &x == &y;
  return items_equal(x.items, y.items, ledger);
}

bool dicts_equal(const Dict& a, const Dict& b, Ledger* ledger) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    const Value* other = b.find(key, ledger);
    if (other == nullptr || !equal(value, *other, ledger)) return false;
  }
  return true;
}

}  // namespace

void Ledger::step(uint64_t count) {
  steps_ += count;
  if (steps_ > limits_.max_steps) fail_limit("it took more than ", limits_.max_steps, " steps");
}

void Ledger::acquire(size_t bytes) {
  step(1 + bytes / kTextBytesPerStep);
  if (bytes > limits_.max_live_bytes - live_) {
    fail_limit("its values would hold more than ", human_bytes(limits_.max_live_bytes));
  }
  live_ += bytes;
}

const Text& Value::text() const { return get<std::shared_ptr<const StringObject>>()->text; }

uint32_t Value::depth() const {
  return std::visit(
      [](const auto& state) -> uint32_t {
        if constexpr (requires { state->depth; }) {
          return state->depth;
        } else {
          return 0;
        }
      },
      state_);
}

const void* Value::identity() const {
  return std::visit(
      [](const auto& state) -> const void* {
        if constexpr (requires { state.use_count(); }) {
          return state.get();
        } else if constexpr (std::is_pointer_v<std::decay_t<decltype(state)>>) {
          return state;
        } else {
          return nullptr;
        }
      },
      state_);
}

const Value* Dict::find(std::string_view key) const {
  if (entries.size() >= kIndexFrom) {
    const auto found = index.find(key);
    return found == index.end() ? nullptr : &entries[found->second].second;
  }
  for (const auto& [name, value] : entries) {
    if (name.is_string() && name.bytes() == key) return &value;
  }
  return nullptr;
}

const Value* Dict::find(const Value& key, Ledger* meter) const {
  if (key.is_string()) return find(key.bytes());
  for (const auto& [name, value] : entries) {
    if (equal(name, key, meter)) return &value;
  }
  return nullptr;
}

void Dict::set(Value key, Value value, Ledger* meter) {
  depth = std::max({depth, key.depth() + 1, value.depth() + 1});
  if (const Value* old = find(key, meter)) {
    *const_cast<Value*>(old) = std::move(value);
    return;
  }
  entries.emplace_back(std::move(key), std::move(value));
  if (entries.size() < kIndexFrom) return;
  const size_t begin = entries.size() == kIndexFrom ? 0 : entries.size() - 1;
  for (size_t i = begin; i < entries.size(); ++i) {
    if (entries[i].first.is_string()) index.emplace(entries[i].first.bytes(), i);
  }
}

const Value* Namespace::find(std::string_view name) const {
  for (const auto& [key, value] : attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::string undefined_reason(const Value& value) {
  const auto& reason = value.get<Undefined>().reason;
  return reason == nullptr ? "a value is undefined" : *reason;
}

std::string type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined: return "Undefined";
    case Kind::kNone: return "NoneType";
    case Kind::kBool: return "bool";
    case Kind::kInt: return "int";
    case Kind::kFloat: return "float";
    case Kind::kString: return "str";
    case Kind::kSequence: return flavor_name(value.sequence().flavor);
    case Kind::kDict: return "dict";
    case Kind::kNamespace: return "namespace";
    case Kind::kIterator: return "generator";
    case Kind::kMacro: return "macro";
    case Kind::kMethod: return "method";
    case Kind::kBuiltin: return "function";
    case Kind::kLoop: return "loop";
    case Kind::kCycler: return "cycler";
    case Kind::kJoiner: return "joiner";
  }
  return "value";
}

bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone: return false;
    case Kind::kBool:
    case Kind::kInt: return value.integer() != 0;
    case Kind::kFloat: return value.number() != 0.0;
    case Kind::kString: return !value.text().empty();
    case Kind::kSequence: return !value.sequence().items.empty();
    case Kind::kDict: return !value.dict().entries.empty();
    case Kind::kLoop: return !value.get<std::shared_ptr<LoopState>>()->items.empty();
    default: return true;
  }
}

bool equal(const Value& a, const Value& b, Ledger* ledger) {
  if (ledger != nullptr) ledger->step();
  if (a.is_number() && b.is_number()) return numbers_equal(a, b);
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kNone: return true;
    case Kind::kString:
      if (ledger != nullptr) ledger->step(a.text().size() / kTextBytesPerStep);
      return a.bytes() == b.bytes();
    case Kind::kSequence: return sequences_equal(a, b, ledger);
    case Kind::kDict: return dicts_equal(a.dict(), b.dict(), ledger);
    case Kind::kBuiltin: return a.get<Builtin>() == b.get<Builtin>();
    default: return a.identity() == b.identity();
  }
}

bool less(const Value& a, const Value& b, Ledger* ledger) {
  if (ledger != nullptr) ledger->step();
  for (const Value* side : {&a, &b}) {
    if (side->is_undefined()) fail_value(undefined_reason(*side));
  }
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return a.integer() < b.integer();
    const auto wide = [](const Value& v) {
      return v.is(Kind::kFloat) ? static_cast<long double>(v.number())
                                : static_cast<long double>(v.integer());
    };
    return wide(a) < wide(b);
  }
  // UTF-8 sorts as its code points do.
  if (a.is_string() && b.is_string()) return a.bytes() < b.bytes();
  if (a.is(Kind::kSequence) && b.is(Kind::kSequence) &&
      a.sequence().flavor == b.sequence().flavor &&
      (a.sequence().flavor == Flavor::kList || a.sequence().flavor == Flavor::kTuple)) {
    const auto& x = a.sequence().items;
    const auto& y = b.sequence().items;
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!equal(x[i], y[i], ledger)) return less(x[i], y[i], ledger);
    }
    return x.size() < y.size();
  }
  fail_value("'<' does not order ", type_name(a), " and ", type_name(b));
}

void require_hashable(const Value& value) {
  if (value.is(Kind::kDict)) fail_value("a dict cannot be a key");
  if (!value.is(Kind::kSequence)) return;
  if (value.sequence().flavor != Flavor::kTuple && value.sequence().flavor != Flavor::kRange) {
    fail_value("a ", type_name(value), " cannot be a key");
  }
  for (const Value& item : value.sequence().items) require_hashable(item);
}

}  // namespace topknot::chat
