// Rules as data, refusals with their reason, and the one way a choice is made and explained.
//
// An implementation states what its code truly depends on as a constexpr array of Rule beside the
// kernel. Every broken rule of every candidate is reported, never only the first.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capability/facts.h"
#include "topknot/error.h"

namespace topknot::capability {

// What values of a fact an implementation takes.
struct Accepts {
  enum class Kind : uint8_t { kExactly, kAtLeast, kAtMost, kBetween, kMultipleOf, kOneOf };
  static constexpr size_t kMaxValues = 32;  // every type that a weight may have
  Kind kind = Kind::kExactly;
  std::array<int64_t, kMaxValues> values = {};
  size_t count = 0;
};

template <class T>
constexpr Accepts exactly(T value) {
  return {Accepts::Kind::kExactly, {static_cast<int64_t>(value)}, 1};
}
template <class T>
constexpr Accepts at_least(T value) {
  return {Accepts::Kind::kAtLeast, {static_cast<int64_t>(value)}, 1};
}
template <class T>
constexpr Accepts at_most(T value) {
  return {Accepts::Kind::kAtMost, {static_cast<int64_t>(value)}, 1};
}
// Both ends are accepted.
template <class T>
constexpr Accepts between(T low, T high) {
  return {Accepts::Kind::kBetween, {static_cast<int64_t>(low), static_cast<int64_t>(high)}, 2};
}
template <class T>
constexpr Accepts multiple_of(T value) {
  return {Accepts::Kind::kMultipleOf, {static_cast<int64_t>(value)}, 1};
}
template <class... T>
constexpr Accepts one_of(T... values) {
  static_assert(sizeof...(values) <= Accepts::kMaxValues);
  return {Accepts::Kind::kOneOf, {static_cast<int64_t>(values)...}, sizeof...(values)};
}

struct Rule {
  Fact fact;
  Accepts accepts;
  const char* because;      // the reason in the code
  const char* remedy = "";  // what the user can do; empty when nothing helps
};

struct Refusal {
  std::string what;    // the fact: "kv_format"
  std::string needed;  // "one of bf16, f32"
  std::string found;   // "q8_0", or "unknown"
  std::string because;
  std::string remedy;  // may be empty
};

bool holds(const Accepts& accepts, int64_t value);
// Every value that `narrow` takes, `wide` takes too. False also where that cannot be told cheaply.
bool implies(const Accepts& narrow, const Accepts& wide);
std::string accepts_string(Fact fact, const Accepts& accepts);  // "at least 80"

// Every broken rule. A fact nobody stated breaks the rules that need it.
std::vector<Refusal> refusals(std::span<const Rule> rules, const Facts& asked);

// Why an implementation is listed before it exists.
struct Missing {
  const char* because;
  const char* remedy;
  const char* what = "kernel";
  const char* needed = "one";
  const char* found = "none in this version";
};

// One way to compute an operation: a row of an ordered list that stands beside the code.
struct Implementation {
  const char* name;
  const char* description;
  std::span<const Rule> rules;
  const Missing* missing = nullptr;  // its place is kept, and refused with this
};

// One candidate of a choice, with why it cannot run here; none means it can.
struct Candidate {
  std::string name;
  std::vector<Refusal> refusals;
};

// A choice among candidates in order of preference.
struct Choice {
  std::string operation;         // "sparse MLA decode"
  std::optional<size_t> chosen;  // index into candidates
  std::vector<Candidate> candidates;
};

Refusal refusal_of(const Missing& missing);

// What keeps an implementation from running as asked: every broken rule, and that it is missing.
Candidate judge(const Implementation& implementation, const Facts& asked);

// Chooses the first candidate without refusals, or the one named `forced`: when that refuses, or
// does not exist, nothing is chosen. Never a second choice for a name the user gave.
Choice choose(std::string operation, std::vector<Candidate> candidates,
              std::string_view forced = {});

// The same for a list of implementations.
Choice choose(std::string operation, std::span<const Implementation> implementations,
              const Facts& asked, std::string_view forced = {});

// The table of every candidate with each broken rule: "needed / found / because / try".
std::string explain(const Choice& choice);

// kUnsupported with explain() as the reason, or kNotFound with the nearest names when no candidate
// is called `forced`; `asked` says what was wanted.
Error refused(const Choice& choice, const Facts& asked, std::string_view forced);

}  // namespace topknot::capability
