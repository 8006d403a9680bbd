// TOPKNOT_TRY(name, call): returns the error of `call` from this function, or binds its value.
// TOPKNOT_CHECK_OK(call): the same for a Status.
#pragma once

#include "topknot/error.h"

#define TOPKNOT_TRY_CONCAT_(a, b) a##b
#define TOPKNOT_TRY_NAME_(a, b) TOPKNOT_TRY_CONCAT_(a, b)
#define TOPKNOT_TRY_IMPL_(holder, declaration, ...) \
  auto holder = (__VA_ARGS__);                      \
  if (!holder) return std::move(holder).error();    \
  declaration = std::move(holder).value()
#define TOPKNOT_TRY(declaration, ...) \
  TOPKNOT_TRY_IMPL_(TOPKNOT_TRY_NAME_(topknot_try_, __LINE__), declaration, __VA_ARGS__)
#define TOPKNOT_CHECK_OK(...)                                 \
  do {                                                        \
    if (auto topknot_status = (__VA_ARGS__); !topknot_status) \
      return std::move(topknot_status).error();               \
  } while (false)
