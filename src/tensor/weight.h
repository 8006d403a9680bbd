// A weight matrix, or a stack of them, as its blocks lie in the file.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace topknot::tensor {

// `count` matrices W[out, in]: row r of matrix m starts at data + m * matrix_stride + r * row_bytes
// and holds `in` elements. Not owned; no alignment is promised.
struct Weight {
  DType type = DType::kF32;
  const std::byte* data = nullptr;
  int64_t in = 0;
  int64_t out = 0;
  int64_t count = 1;
  int64_t row_bytes = 0;
  int64_t matrix_stride = 0;  // bytes between matrices

  bool empty() const { return data == nullptr; }
  const std::byte* row(int64_t matrix, int64_t r) const {
    return data + matrix * matrix_stride + r * row_bytes;
  }
};

}  // namespace topknot::tensor
