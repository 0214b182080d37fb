// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/row_order.h"

#include <vector>

#include "base/error.h"

namespace vfm::ops {
namespace {

Tensor on(Device device, const std::vector<std::int32_t>& values) {
  if (values.empty()) return Tensor({0}, DType::i32, device);
  const Tensor here = Tensor::borrow(values.data(), {static_cast<std::int64_t>(values.size())},
                                     DType::i32, nullptr);
  return device == Device::cpu ? here.clone() : here.to(device);
}

Tensor move_rows(Tape& tape, const Tensor& x, const Tensor& there, const Tensor& back) {
  const Tensor y = gather_rows(x, there);
  tape.record(y, {x}, [x, y, back](Tape& t) { t.accumulate(x, gather_rows(t.take(y), back)); });
  return y;
}

}  // namespace

RowOrder::RowOrder(std::span<const std::int32_t> order, Device device) {
  const auto rows = static_cast<std::int64_t>(order.size());
  std::vector<std::int32_t> inverse(order.size(), -1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] < 0 || order[i] >= rows || inverse[static_cast<std::size_t>(order[i])] >= 0)
      fail("an order of {} rows that is not a permutation", rows);
    inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int32_t>(i);
  }
  there_ = on(device, {order.begin(), order.end()});
  back_ = on(device, inverse);
}

RowChoice::RowChoice(std::span<const std::int32_t> numbers, std::int64_t of, Device device)
    : of_(of) {
  const std::vector<std::int32_t> list(numbers.begin(), numbers.end());
  takers_ = std::make_shared<const RowTakers>(find_takers(on(Device::cpu, list), of));
  numbers_ = on(device, list);
}

Tensor RowChoice::take(const Tensor& x) const {
  if (x.dims() != 2 || x.size(0) != of_)
    fail("a choice of {} rows does not fit {}", of_, to_string(x.shape()));
  return gather_rows(x, numbers_);
}

Tensor RowChoice::add_back(const Tensor& dy) const {
  const Tensor sum = Tensor::zeros({of_, dy.size(1)}, DType::f32, dy.device());
  add_rows(dy.to(DType::f32), *takers_, sum);
  return sum.to(dy.dtype());
}

Tensor reorder_rows(Tape& tape, const Tensor& x, const RowOrder& order) {
  return move_rows(tape, x, order.there(), order.back());
}

Tensor restore_rows(Tape& tape, const Tensor& x, const RowOrder& order) {
  return move_rows(tape, x, order.back(), order.there());
}

}  // namespace vfm::ops
