// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/embedding.h"

#include <memory>

#include "base/error.h"
#include "ops/added_gradient.h"
#include "ops/pointwise/rows.h"

namespace vfm::ops {

Tensor embedding(Tape& tape, const Tensor& table, std::span<const std::int32_t> numbers) {
  if (table.dims() != 2) fail("embedding: the table is {}", to_string(table.shape()));
  for (const std::int32_t number : numbers)
    if (number < -1 || number >= table.size(0))
      fail("embedding: token {} of a table of {}", number, table.size(0));
  const Tensor here = Tensor::borrow(numbers.data(), {static_cast<std::int64_t>(numbers.size())},
                                     DType::i32, nullptr)
                          .clone();
  const Tensor y = gather_rows(table, here.to(table.device()));
  tape.record(y, {table}, [table, y, here](Tape& t) {
    const Tensor dy = t.take(y).to(DType::f32);
    const AddedGradient sum(t, table);
    add_rows(dy, find_takers(here, table.size(0)), sum.tensor());
    sum.finish();
  });
  return y;
}

}  // namespace vfm::ops
