// The CUDA versions of the kernels of softmax_cpu.h.
// SPDX-License-Identifier: Apache-2.0
#include "kernels/softmax.h"
#include "ops/attention/softmax_cpu.h"
#include "tensor/device.h"

namespace vfm::ops::cuda {

using kernels::Type;

void softmax_rows(const float* s, float* p, std::int64_t rows, std::int64_t columns, float scale) {
  check_gpu(kernels::softmax_rows(s, Type::f32, p, rows, columns, scale, compute_stream()),
            "run softmax");
}
void softmax_rows(const float* s, std::uint16_t* p, std::int64_t rows, std::int64_t columns,
                  float scale) {
  check_gpu(kernels::softmax_rows(s, Type::bf16, p, rows, columns, scale, compute_stream()),
            "run softmax");
}

void softmax_rows_backward(const float* p, const float* dp, float* ds, std::int64_t rows,
                           std::int64_t columns, float scale) {
  check_gpu(
      kernels::softmax_rows_backward(Type::f32, p, dp, ds, rows, columns, scale, compute_stream()),
      "run softmax backward");
}
void softmax_rows_backward(const std::uint16_t* p, const float* dp, std::uint16_t* ds,
                           std::int64_t rows, std::int64_t columns, float scale) {
  check_gpu(
      kernels::softmax_rows_backward(Type::bf16, p, dp, ds, rows, columns, scale, compute_stream()),
      "run softmax backward");
}

}  // namespace vfm::ops::cuda
