// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise.h"
#include "ops/pointwise/silu_kernels.h"
#include "tensor/device.h"

namespace vfm::ops::cuda {

void silu_forward(const float* x, float* y, std::int64_t n) {
  check_gpu(kernels::silu_forward(x, y, n, compute_stream()), "run silu");
}

void silu_backward(const float* x, const float* dy, float* dx, std::int64_t n) {
  check_gpu(kernels::silu_backward(x, dy, dx, n, compute_stream()), "run silu backward");
}

}  // namespace vfm::ops::cuda
