// SPDX-License-Identifier: Apache-2.0
#include "kernels/elementwise.h"
#include "ops/optim/scaled_sum_kernels.h"
#include "tensor/device.h"
#include "tensor/kernel_type.h"

namespace vfm::ops::cuda {

void scaled_sum(const TypedArray& out, float a, const TypedArray& x, float b, const TypedArray& y,
                std::int64_t n) {
  check_gpu(kernels::scaled_sum(kernel_type(out.type), out.at, a, kernel_type(x.type), x.at, b,
                                kernel_type(y.type), y.at, n, compute_stream()),
            "run the scaled sum");
}

}  // namespace vfm::ops::cuda
