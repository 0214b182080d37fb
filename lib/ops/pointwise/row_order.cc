// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/row_order.h"

#include <vector>

#include "base/error.h"
#include "ops/pointwise/rows.h"

namespace vfm::ops {
namespace {

Tensor on(Device device, const std::vector<std::int32_t>& values) {
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
      fail("an order of {} rows that is no permutation", rows);
    inverse[static_cast<std::size_t>(order[i])] = static_cast<std::int32_t>(i);
  }
  there_ = on(device, {order.begin(), order.end()});
  back_ = on(device, inverse);
}

Tensor reorder_rows(Tape& tape, const Tensor& x, const RowOrder& order) {
  return move_rows(tape, x, order.there(), order.back());
}

Tensor restore_rows(Tape& tape, const Tensor& x, const RowOrder& order) {
  return move_rows(tape, x, order.back(), order.there());
}

}  // namespace vfm::ops
