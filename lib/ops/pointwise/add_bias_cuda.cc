// SPDX-License-Identifier: Apache-2.0
#include "kernels/text_rows.h"
#include "ops/pointwise/add_bias_kernels.h"
#include "tensor/device.h"

namespace vfm::ops {

void cuda::add_bias(float* y, std::int64_t rows, std::int64_t stride, const float* bias,
                    std::int64_t width) {
  check_gpu(kernels::add_bias(y, rows, stride, bias, width, compute_stream()), "add a bias");
}

}  // namespace vfm::ops
