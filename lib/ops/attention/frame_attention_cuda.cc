// SPDX-License-Identifier: Apache-2.0
#include "kernels/softmax.h"
#include "ops/attention/frame_attention_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"

namespace vfm::ops::cuda {

void softmax_rows(const float* s, DType type, void* p, std::int64_t rows, std::int64_t columns,
                  float scale) {
  check_gpu(kernels::softmax_rows(s, kernel_type(type), p, rows, columns, scale, compute_stream()),
            "run softmax");
}

void softmax_rows_backward(DType type, const void* p, const float* dp, void* ds, std::int64_t rows,
                           std::int64_t columns, float scale) {
  check_gpu(kernels::softmax_rows_backward(kernel_type(type), p, dp, ds, rows, columns, scale,
                                           compute_stream()),
            "run softmax backward");
}

}  // namespace vfm::ops::cuda
