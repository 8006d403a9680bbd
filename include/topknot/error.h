// The error of every fallible call: what, where, why, what to do. Plain types; needs nothing from
// src/.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "topknot/export.h"

namespace topknot {

// One list for every layer. The CLI maps it to an exit code in one table, the server to an HTTP
// status.
enum class Code : uint8_t {
  kInvalidArgument,  // the caller asked for something that can never work
  kNotFound,         // a file, a tensor, a key or a name does not exist
  kCorrupt,          // bytes do not say what they must
  kUnsupported,      // understood, and not offered here
  kOutOfRange,       // a length, position or context over its limit
  kResource,         // memory, disk, device or descriptors ran out
  kIo,               // the operating system refused a read or write
  kCancelled,        // the caller stopped it
};

TOPKNOT_API const char* code_name(Code code);

// Four sentences, so that none can be left out by accident. `where` and `fix` may be empty only
// when there is no place (a flag, a prompt) or no remedy.
struct Error {
  Code code = Code::kInvalidArgument;
  std::string what;   // the thing that failed, in the user's words
  std::string where;  // file, tensor, byte offset, template line
  std::string why;    // needed and found
  std::string fix;    // what the user can do

  // "what\n  where: ...\n  why: ...\n  fix: ..."; lines that are empty are left out.
  TOPKNOT_API std::string to_string() const;
};

// A value or an Error. The member names are those of std::expected (C++23).
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT implicit

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  Error& error() & { return std::get<1>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT implicit

  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  Error& error() & { return *error_; }
  const Error& error() const& { return *error_; }
  Error&& error() && { return std::move(*error_); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace topknot
