// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "ops/pointwise/pointwise_kernels.h"

namespace vfm::ops {

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
