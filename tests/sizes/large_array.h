// Arrays of more elements than memory holds, of which few pages are touched.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <span>

namespace topknot::test {

// Zeros until written; a page that is only read costs nothing.
template <class T>
class SparseArray {
 public:
  explicit SparseArray(int64_t count) : count_(count) {
    void* data = ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data != MAP_FAILED) data_ = static_cast<T*>(data);
  }
  ~SparseArray() {
    if (data_ != nullptr) ::munmap(data_, bytes());
  }
  SparseArray(const SparseArray&) = delete;
  SparseArray& operator=(const SparseArray&) = delete;

  bool there() const { return data_ != nullptr; }  // false: the system refused so much
  T* data() const { return data_; }
  T& operator[](int64_t i) const { return data_[i]; }
  std::span<T> span() const { return {data_, static_cast<size_t>(count_)}; }

 private:
  size_t bytes() const { return static_cast<size_t>(count_) * sizeof(T); }
  int64_t count_;
  T* data_ = nullptr;
};

// One piece of memory, seen again and again one after the other, and another piece of the same size
// behind: all of it can be read and written, and takes the memory of two pieces. (A process's
// resident size counts a page as often as it is seen; what is taken from the machine does not.)
class RepeatedArray {
 public:
  RepeatedArray(int64_t piece, int64_t repeats) : piece_(piece), pieces_(repeats + 1) {
    const int file = ::memfd_create("topknot-test", MFD_CLOEXEC);
    const auto bytes = static_cast<off_t>(piece) * static_cast<off_t>(sizeof(int32_t));
    void* data = MAP_FAILED;
    if (file >= 0 && ::ftruncate(file, 2 * bytes) == 0) {
      data = ::mmap(nullptr, size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    if (data != MAP_FAILED) data_ = static_cast<int32_t*>(data);
    for (int64_t i = 0; data_ != nullptr && i < pieces_; ++i) {
      const off_t offset = i + 1 == pieces_ ? bytes : 0;
      EXPECT_NE(::mmap(data_ + i * piece, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_FIXED, file, offset),
                MAP_FAILED);
    }
    if (file >= 0) ::close(file);
  }
  ~RepeatedArray() {
    if (data_ != nullptr) ::munmap(data_, size());
  }
  RepeatedArray(const RepeatedArray&) = delete;
  RepeatedArray& operator=(const RepeatedArray&) = delete;

  bool there() const { return data_ != nullptr; }
  int64_t count() const { return piece_ * pieces_; }
  std::span<int32_t> span() const { return {data_, static_cast<size_t>(count())}; }
  std::span<int32_t> first() const { return span().first(static_cast<size_t>(piece_)); }
  std::span<int32_t> last() const { return span().last(static_cast<size_t>(piece_)); }

 private:
  size_t size() const { return static_cast<size_t>(count()) * sizeof(int32_t); }
  int64_t piece_;
  int64_t pieces_;
  int32_t* data_ = nullptr;
};

}  // namespace topknot::test
