// A box of a tensor, and the places of its elements among those of the whole tensor, both in C
// order. Throws Error for ranges outside. Thread-safety: const members from any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace vfm::io {

/// In each dim the indices [offset, offset + length).
struct TensorRange {
  std::vector<std::int64_t> shape;           ///< of the whole tensor
  std::vector<std::int64_t> offset, length;  ///< by dim

  static TensorRange whole(std::vector<std::int64_t> shape);
  /// A part of one dim, with the others whole. Throws Error unless it lies within the tensor.
  static TensorRange part(std::vector<std::int64_t> shape, std::size_t dim, std::int64_t offset,
                          std::int64_t length);
  bool lies_within() const;
  std::int64_t elements() const;  ///< in the box
  /// The number of the box's elements before element `at` of the whole tensor. So its elements
  /// among [begin, end) are [elements_before(begin), elements_before(end)) of the box.
  std::int64_t elements_before(std::int64_t at) const;
};

/// A range as runs of elements that lie one after the other in the whole tensor, all of one length.
class RangeRuns {
 public:
  /// Keeps a reference to `range`, which lies within its tensor.
  explicit RangeRuns(const TensorRange& range);

  /// Calls act(at, in, count) for the elements [begin, end) of the range, run by run: `count` from
  /// element `in` of the range on are those from element `at` of the whole tensor on.
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
  std::size_t dims_;  // that count runs, and the one that a run is a part of; others are within
  std::int64_t length_ = 1;
};

}  // namespace vfm::io
