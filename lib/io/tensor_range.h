// A box-shaped part of a tensor, and the positions of its elements in the whole tensor. The part
// and the tensor are in C order. Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vfm::io {

/// The indices [offset, offset + length) of each dim.
struct TensorRange {
  std::vector<std::int64_t> shape;           ///< shape of the whole tensor
  std::vector<std::int64_t> offset, length;  ///< of the box, by dim

  static TensorRange whole(std::vector<std::int64_t> shape);
  /// Returns a part of one dim, with all of the other dims. Throws Error unless the part lies
  /// within the tensor.
  static TensorRange part(std::vector<std::int64_t> shape, std::size_t dim, std::int64_t offset,
                          std::int64_t length);
  bool lies_within() const;
  std::int64_t elements() const;  ///< number of elements in the box
  /// Returns the number of the box's elements before element `at` of the whole tensor. So the
  /// elements [begin, end) of the tensor contain [elements_before(begin), elements_before(end)) of
  /// the box.
  std::int64_t elements_before(std::int64_t at) const;
};

/// Splits a range into runs of equal length whose elements are contiguous in the whole tensor.
class RangeRuns {
 public:
  /// Keeps a reference to `range`, which must lie within its tensor.
  explicit RangeRuns(const TensorRange& range);

  /// Calls act(at, in, count) for the elements [begin, end) of the range, run by run: `count`
  /// elements from element `in` of the range are the elements from element `at` of the whole
  /// tensor.
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
  std::size_t dims_;  // outer dims, up to the dim that a run is a part of
  std::int64_t length_ = 1;
};

}  // namespace vfm::io
