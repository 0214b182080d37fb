// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise.h"
#include "ops/pointwise/swiglu_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"

namespace vfm::ops::cuda {

void swiglu_forward(DType type, const void* x, void* y, std::int64_t rows, std::int64_t width) {
  check_gpu(kernels::swiglu_forward(kernel_type(type), x, y, rows, width, compute_stream()),
            "run swiglu");
}

void swiglu_backward(DType type, const void* x, const void* dy, void* dx, std::int64_t rows,
                     std::int64_t width) {
  check_gpu(kernels::swiglu_backward(kernel_type(type), x, dy, dx, rows, width, compute_stream()),
            "run swiglu backward");
}

}  // namespace vfm::ops::cuda
