// SPDX-License-Identifier: Apache-2.0
#include "io/tensor_range.h"

#include <span>
#include <utility>

#include "base/error.h"

namespace vfm::io {
namespace {

std::int64_t product(std::span<const std::int64_t> sizes) {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes)
    product *= size;
  return product;
}

}  // namespace

TensorRange TensorRange::whole(std::vector<std::int64_t> shape) {
  std::vector<std::int64_t> zeros(shape.size(), 0);
  return {shape, std::move(zeros), shape};
}

TensorRange TensorRange::part(std::vector<std::int64_t> shape, std::size_t dim, std::int64_t offset,
                              std::int64_t length) {
  TensorRange range = whole(std::move(shape));
  if (dim >= range.shape.size()) fail("a tensor of {} dims has no dim {}", range.shape.size(), dim);
  range.offset[dim] = offset;
  range.length[dim] = length;
  if (!range.lies_within())
    fail("{} from {} on do not lie within the {} of dim {}", length, offset, range.shape[dim], dim);
  return range;
}

bool TensorRange::lies_within() const {
  const std::size_t dims = shape.size();
  bool inside = offset.size() == dims && length.size() == dims;
  for (std::size_t d = 0; inside && d < dims; ++d)
    inside = offset[d] >= 0 && length[d] >= 0 && length[d] <= shape[d] - offset[d];
  return inside;
}

std::int64_t TensorRange::elements() const {
  return product(length);
}

std::int64_t TensorRange::elements_before(std::int64_t at) const {
  if (at >= product(shape)) return elements();
  std::int64_t stride = product(shape), count = 0, in_row = elements();
  for (std::size_t d = 0; d < shape.size() && in_row > 0; ++d) {
    stride /= shape[d];
    in_row /= length[d];
    const std::int64_t index = at / stride - offset[d];
    at %= stride;
    count += std::clamp(index, std::int64_t{0}, length[d]) * in_row;
    if (index < 0 || index >= length[d]) break;  // `at` is in a row outside the range.
  }
  return count;
}

RangeRuns::RangeRuns(const TensorRange& range) : range_(range), dims_(range.shape.size()) {
  // The last dims that the range has whole are contiguous.
  while (dims_ > 0 && range.length[dims_ - 1] == range.shape[dims_ - 1])
    --dims_;
  if (dims_ > 0) --dims_;  // The part of the next dim is contiguous, too.
  length_ = product(std::span(range.length).subspan(dims_));
}

std::int64_t RangeRuns::place(std::int64_t run) const {
  const std::span<const std::int64_t> shape = range_.shape;
  std::int64_t at = 0, stride = product(shape.subspan(dims_));
  if (dims_ < shape.size()) at = range_.offset[dims_] * product(shape.subspan(dims_ + 1));
  for (std::size_t d = dims_; d-- > 0; run /= range_.length[d], stride *= shape[d])
    at += (range_.offset[d] + run % range_.length[d]) * stride;
  return at;
}

}  // namespace vfm::io
