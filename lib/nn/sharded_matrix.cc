// SPDX-License-Identifier: Apache-2.0
#include "nn/sharded_matrix.h"

#include <numeric>

#include "base/error.h"
#include "nn/placement.h"

namespace vfm::nn {

ShardedMatrix::ShardedMatrix(const Shape& shape, DType dtype, Device device, dist::Group& group,
                             bool trained)
    : name_(Tensor::name(shape, dtype, device)),
      no_gradient_(Tensor::name(shape, DType::f32, device)),
      group_(group) {
  for (int rank = 0; rank < group.size(); ++rank)
    rows_.push_back(share(name_.elements(), rank + 1, group.size()) -
                    share(name_.elements(), rank, group.size()));
  const Shape own = {rows_[static_cast<std::size_t>(group.rank())]};
  own_ = Tensor(own, dtype, device);
  if (trained) gradient_ = Tensor::zeros(own, DType::f32, device);
}

Tensor ShardedMatrix::get() const {
  if (!all_.defined())
    fail("a matrix {} is used while it is not gathered", to_string(name_.shape()));
  return all_;
}

Tensor ShardedMatrix::gather() const {
  const Tensor all(name_.shape(), own_.dtype(), name_.device());
  group_.all_gather(own_, all.reshape({name_.elements()}), rows_).wait();
  return all;
}

Tensor ShardedMatrix::stretch_of(const Tensor& all) const {
  const auto own = rows_.begin() + group_.rank();
  const std::int64_t begin = std::accumulate(rows_.begin(), own, std::int64_t{0});
  return all.reshape({name_.elements()}).rows(begin, begin + *own);
}

void ShardedMatrix::keep_in_place_of_own(const Tensor& all) {
  low_ = stretch_of(all).clone();
  own_ = Tensor();
}

void ShardedMatrix::watch(ops::Tape& tape) const {
  if (gradient_.defined()) tape.watch(name_, sum_.defined() ? sum_ : no_gradient_);
}

}  // namespace vfm::nn
