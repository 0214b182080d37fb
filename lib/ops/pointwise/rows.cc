// SPDX-License-Identifier: Apache-2.0
#include "ops/pointwise/rows.h"

#include <cstring>
#include <numeric>

#include "base/error.h"
#include "ops/pointwise/pointwise_kernels.h"
#include "ops/run.h"

namespace vfm::ops {

Tensor gather_rows(const Tensor& x, const Tensor& numbers) {
  if (x.dims() != 2 || numbers.dims() != 1 || numbers.dtype() != DType::i32 ||
      x.device() != numbers.device())
    fail("cannot take {} {} of {}", dtype_name(numbers.dtype()), to_string(numbers.shape()),
         to_string(x.shape()));
  const Tensor y({numbers.elements(), x.size(1)}, x.dtype(), x.device());
  VFM_RUN(Touching(y, y, numbers), gather_rows, x, numbers, y);
  return y;
}

RowTakers find_takers(const Tensor& numbers, std::int64_t limit) {
  const std::int32_t* const values = numbers.data<std::int32_t>();
  const std::int64_t count = numbers.elements();
  std::vector<std::int32_t> counts(static_cast<std::size_t>(limit));
  for (std::int64_t i = 0; i < count; ++i) {
    if (values[i] < -1 || values[i] >= limit) fail("row {} of {} is wanted", values[i], limit);
    if (values[i] < 0) continue;
    ++counts[static_cast<std::size_t>(values[i])];
  }
  RowTakers takers;
  std::int32_t at = 0;
  for (std::int32_t row = 0; row < limit; ++row) {
    std::int32_t& of_row = counts[static_cast<std::size_t>(row)];
    if (of_row > 0) {
      takers.rows.push_back(row);
      takers.begin.push_back(at);
    }
    at += std::exchange(of_row, at);  // from now on, where the row's next taker goes
  }
  takers.begin.push_back(at);
  takers.takers.resize(static_cast<std::size_t>(at));
  for (std::int64_t i = 0; i < count; ++i)
    if (values[i] >= 0)
      takers.takers[static_cast<std::size_t>(counts[static_cast<std::size_t>(values[i])]++)] =
          static_cast<std::int32_t>(i);
  return takers;
}

void add_rows(const Tensor& x, const RowTakers& takers, const Tensor& to) {
  if (x.dims() != 2 || to.dims() != 2 || x.size(1) != to.size(1) || x.dtype() != DType::f32 ||
      to.dtype() != DType::f32 || x.device() != to.device())
    fail("cannot add rows of {} to {}", to_string(x.shape()), to_string(to.shape()));
  VFM_RUN(Touching(x, x, x), add_rows, x, takers, to);
}

void cpu::gather_rows(const Tensor& x, const Tensor& numbers, const Tensor& y) {
  const std::int64_t rows = numbers.elements();
  const std::size_t bytes = static_cast<std::size_t>(x.size(1)) * dtype_size(x.dtype());
  const std::int32_t* const from = numbers.data<std::int32_t>();
#pragma omp parallel for schedule(static) if (rows * x.size(1) > 16384)
  for (std::int64_t i = 0; i < rows; ++i) {
    std::byte* const to = y.data<std::byte>() + static_cast<std::size_t>(i) * bytes;
    if (from[i] < 0)
      std::memset(to, 0, bytes);
    else
      std::memcpy(to, x.data<std::byte>() + static_cast<std::size_t>(from[i]) * bytes, bytes);
  }
}

void cpu::add_rows(const Tensor& x, const RowTakers& takers, const Tensor& to) {
  const std::int64_t width = x.size(1), rows = static_cast<std::int64_t>(takers.rows.size());
#pragma omp parallel for schedule(dynamic, 8) if (x.elements() > 16384)
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto at = static_cast<std::size_t>(r);
    float* const sum = to.data<float>() + takers.rows[at] * width;
    for (std::int32_t k = takers.begin[at]; k < takers.begin[at + 1]; ++k) {
      const float* const row = x.data<float>() + takers.takers[static_cast<std::size_t>(k)] * width;
#pragma omp simd
      for (std::int64_t i = 0; i < width; ++i)
        sum[i] += row[i];
    }
  }
}

}  // namespace vfm::ops
