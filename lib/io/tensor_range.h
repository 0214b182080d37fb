// A box-shaped part of a tensor, and the positions of its elements in the tensor. The part and the
// tensor are in C order. Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vfm::io {

/// The part of a tensor with the indices [offset, offset + length) of each dimension.
struct TensorRange {
  std::vector<std::int64_t> shape;  ///< Shape of the whole tensor.
  std::vector<std::int64_t> offset, length;

  static TensorRange whole(std::vector<std::int64_t> shape);
  /// Returns the range [offset, offset + length) of dimension `dim`, with all indices of the other
  /// dimensions. Throws Error unless the range lies in the tensor.
  static TensorRange part(std::vector<std::int64_t> shape, std::size_t dim, std::int64_t offset,
                          std::int64_t length);
  bool lies_within() const;
  std::int64_t elements() const;
  /// Returns how many elements of the range come before element `at` of the whole tensor.
  std::int64_t elements_before(std::int64_t at) const;
};

/// Splits a range into runs of equal length. The elements of a run are contiguous in the tensor.
class RangeRuns {
 public:
  /// Keeps a reference to `range`, which must lie in its tensor.
  explicit RangeRuns(const TensorRange& range);

  /// Splits the elements [begin, end) of the range into runs, and calls act(at, in, count) for each
  /// run. A run has `count` elements. Its first element is element `in` of the range and element
  /// `at` of the tensor.
  template <class Act>
  void for_each(std::int64_t begin, std::int64_t end, const Act& act) const {
    while (begin < end) {
      const std::int64_t inside = begin % length_;
      const std::int64_t count = std::min(length_ - inside, end - begin);
      act(place(begin / length_) + inside, begin, count);
      begin += count;
    }
  }

 private:
  std::int64_t place(std::int64_t run) const;

  const TensorRange& range_;
  std::size_t dims_;  // Number of dimensions outside of a run.
  std::int64_t length_ = 1;
};

}  // namespace vfm::io
